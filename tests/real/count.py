"""Counts to ten with Spark, wherever its driver is, and ends with the exit code that it is told."""

import sys

from pyspark.sql import SparkSession

session = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
print("counted", session.range(10).count(), "on", session.sparkContext.master, "of", session.version, flush=True)
session.stop()
sys.exit(int(sys.argv[1]))
