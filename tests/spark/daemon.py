"""The process that Spark forks Python workers from, with the package imported, so that they start at once."""

from pyspark import daemon

import sparserank.spark.bilinear
import sparserank.spark.domination
import sparserank.spark.features
import sparserank.spark.scoring
import sparserank.spark.text  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
