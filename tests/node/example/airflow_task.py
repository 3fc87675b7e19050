"""Runs one task of Airflow's provider for Spark as a worker does, without a scheduler.

The only argument is JSON: what the SparkSubmitOperator is made with. The exit code is 0 where the task succeeded.
A worker gets SIGTERM when its task is marked as failed or runs for too long.
"""

import json
import signal
import sys

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

operator = SparkSubmitOperator(task_id="report", conn_id="spark_k8s", **json.loads(sys.argv[1]))


def killed(_signal, _frame):
    operator.on_kill()
    sys.exit(143)


signal.signal(signal.SIGTERM, killed)
operator.execute({})
