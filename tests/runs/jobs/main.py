"""Says what the driver and the executors see: a module, a package in a zip, a file. The only argument is the exit code."""

import sys

from pyspark import SparkContext, SparkFiles

import one_module
from zipped import inner

TASKS = 8


def report(number):
    import os

    import one_module
    from zipped import inner

    with open(SparkFiles.get("words.txt")) as file:
        text = file.read().strip()
    where = os.environ.get("SPARK_EXECUTOR_ID", "driver")
    return f"{where}: {one_module.greet('task')} {inner.count(number)}, file {text}"


context = SparkContext()
print("seen by", report(0))
for line in context.parallelize(range(1, TASKS + 1), TASKS).map(report).collect():
    print("seen by", line)
context.stop()
sys.exit(int(sys.argv[1]))
