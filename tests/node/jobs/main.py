"""Says what the driver and the executors see: a module, a package in a zip, a file, an archive. The only argument is the
exit code."""

import sys

from pyspark import SparkContext, SparkFiles

import one_module
from zipped import inner

TASKS = 8


def report(number):
    import os

    import one_module
    from zipped import inner

    def read(path):
        with open(path) as file:
            return file.read().strip()

    file = read(SparkFiles.get("words.txt"))
    in_archive = read(os.path.join(SparkFiles.get("books"), "page.txt"))
    # Spark puts both into the working folder as well.
    beside = read("words.txt")
    where = os.environ.get("SPARK_EXECUTOR_ID", "driver")
    seen = f"file {file}, beside {beside}, archive {in_archive}"
    return f"{where}: {one_module.greet('task')} {inner.count(number)}, {seen}"


context = SparkContext()
lines = [report(0)] + context.parallelize(range(1, TASKS + 1), TASKS).map(report).collect()
# Spark copies this output in pieces, and its log goes to the same place: a line of that would stand within one of these.
context.setLogLevel("OFF")
for line in lines:
    print("seen by", line)
context.stop()
sys.exit(int(sys.argv[1]))
