"""The registry of named data sets: one row a set, and nothing that a row does not say.

Every digest below was taken of the data that the project's own figures come from (see `checksum` for what each is
over), but for two "file:" ones, of 20 Newsgroups at figshare and of BEIR's nfcorpus.zip, which their users publish.
"""

from __future__ import annotations

from .download import DataSet, Edition, Part, Source
from .rcv1 import ARCHIVE, FILES

_HERE = "sparserank.data.datasets"
_LETOR_TERMS = "Microsoft Research's licence agreement for LETOR: research use"
_LETOR_HOME = "Microsoft Research's LETOR pages"
_MNIST_HOMES = ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist")
_LIBSVM_HOME = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel"
_CRANFIELD_HOME = "ir.dcs.gla.ac.uk/resources/test_collections/cran/cran.tar.gz"

_MNIST = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_MQ2008 = {
    "S1.txt": "cbd42504549a2388f6c0aefdb506f22074225b574c7a5df10194174c9b00e4e0",
    "S2.txt": "055ac792cb8f7d5a029090b8acbfb6c57323339d1371251bf2465ac182aa8605",
    "S3.txt": "a03fe2b6e76479de60fecdb37d560a40a4e899b0cd685553d2da31ea205af1ab",
    "S4.txt": "a239850bc6fe960ad08c2b7b0d99db90fe976dd93a15358e98036591b4e7a2ac",
    "S5.txt": "c68c52feb1ecae7f17b64c8e2fda2098302681bbd4ea5fad8c73a1d32a1cf2b2",
}
_OHSUMED = {
    "QueryLevelNorm/Fold1/test.txt": "526f9158b85fb9b6446f9c87e1ccc428f7e54d639800e108c091cb70706a88e6",
    "QueryLevelNorm/Fold2/test.txt": "77db6790a7023ed6d9bd2b9b2fa8528e1d82aa7e896863d3ed844f635870fbe2",
    "QueryLevelNorm/Fold3/test.txt": "935539d33380570cdee765e38f8c2796cb4c04d01a50e50374e8bc7d45872571",
    "QueryLevelNorm/Fold4/test.txt": "1d1ff784d9fdc4cd491a0d70fdd4dfb1adada943a0eb2e3954d74187158160da",
    "QueryLevelNorm/Fold5/test.txt": "49975c7319672e4fba82d00c69911b8514752bb2610077a5f432d7efc2fa5fc0",
    "Feature-min/Fold1/testset.txt": "11a83075e00c376f24c4c5b4954a220393dc259e3fb4bbde22ab85367cc6986b",
    "Feature-min/Fold2/testset.txt": "c9357efc8f1dd050ce5e0d1e6d2ea8c15177925b6da219c37d399195383f392e",
    "Feature-min/Fold3/testset.txt": "0464b8a30863271de46dffbf716ec4c41b89620e77699f9511dd6d3933952cb6",
    "Feature-min/Fold4/testset.txt": "85c455f8386dd8b58a83138b2d14642fb65d79f6d4340033ae23f4c69aa2973a",
    "Feature-min/Fold5/testset.txt": "e76543eb37086d9ecf913afc21a9204cde09b3a1967d3a14d795068ac7abc98c",
}
_NFCORPUS = {
    "corpus.jsonl": "f3bd4da16e34ae2aee9446721d700ec209b6d37b835ffc1e7f48526949f1c138",
    "queries.jsonl": "004446efb340f7be04a801889da12bffc014d53cad1c528449f306047e507695",
    "qrels/train.tsv": "ef516ed10a1753f4e0165f6f8b57336687a7810c28e4ad46493610c9aeb63315",
    "qrels/dev.tsv": "e28db4337c8f195b9fda0168759b12de5a051d57e5a08356344a86d730efc8ee",
}
_CRANFIELD = {
    "cran.all.1400": "b234544b6ceccd131520df4a3cb6d42aee6576eb577933d047e722bbfe7b0b09",
    "cran.qry": "dd9b1419f678874daf66d5239ca372193722d74f5ea749f3b0f46a6b37cd9274",
    "cranqrel": "92e54b58dac0b980152178f350d892fae66c8a239b8a11715b835fb8d2f6bc0e",
}


def _parts(kind: str, digests: dict[str, str]) -> tuple[Part, ...]:
    return tuple(Part(name, (f"{kind}:{digest}",)) for name, digest in digests.items())


_ROWS = (
    DataSet(
        name="20newsgroups",
        what="Usenet posts in 20 groups, split by date",
        size="11,314 train and 7,532 test posts",
        terms="collected by Ken Lang; no licence is stated",
        how="Fetched on first use (14 MB) from figshare or qwone.com; or put 20news-bydate.tar.gz into "
        "$SPARSERANK_DATA/20newsgroups.",
        loader=f"{_HERE}.newsgroups:load",
        editions=(
            Edition(
                parts=(
                    Part(
                        "20news-bydate.tar",
                        (
                            "file:3d01b63723a3e95eb3421f5a2b21777172f3e9a6c7ade7f608a457b1c78ec813",
                            "file:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
                            "members:20701c5675b5327116388288aa3225c61bc1005708ccbda9bfb83c22891263d6",
                        ),
                    ),
                ),
                sources=(
                    Source(
                        "20news-bydate.tar.gz",
                        (
                            "https://ndownloader.figshare.com/files/5975967",
                            "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
                        ),
                    ),
                ),
            ),
        ),
    ),
    DataSet(
        name="mnist",
        what="images of handwritten digits, 28 × 28",
        size="60,000 train and 10,000 test images",
        terms="published by Y. LeCun, C. Cortes and C. J. C. Burges for research; no licence is stated",
        how="Fetched on first use (12 MB) from public mirrors; or put its four .gz files into $SPARSERANK_DATA/mnist.",
        loader=f"{_HERE}.images:mnist",
        editions=(
            Edition(
                parts=_parts("content", _MNIST),
                sources=tuple(
                    Source(f"{name}.gz", tuple(f"{home}/{name}.gz" for home in _MNIST_HOMES)) for name in _MNIST
                ),
            ),
        ),
    ),
    DataSet(
        name="digits",
        what="images of handwritten digits, 8 × 8",
        size="1,297 train and 500 test images",
        terms="part of scikit-learn; UCI Machine Learning Repository, CC BY 4.0",
        how="Comes with scikit-learn.",
        loader=f"{_HERE}.images:digits",
        here=f"{_HERE}.images:digits_file",
    ),
    DataSet(
        name="rcv1",
        what="Reuters news stories as tf-idf rows with several topics each (five subsets of RCV1-v2)",
        size="27,495 stories, 47,236 columns, 101 topics",
        terms="term vectors released for research by Lewis et al. (2004)",
        how="Fetched on first use from the LIBSVM site: ten files, put together as one.",
        loader=f"{_HERE}.rcv1:load",
        editions=(
            Edition(
                parts=(
                    Part(
                        ARCHIVE,
                        (
                            "file:f74fb89fa39c9cf8db92c023163aaa29cfdbb52e0d9aaed7c30cf6d045c0f51b",
                            "members:cf8b0cdf038df4121c6ef9fa04b43869efedbaad9f6b2688324aaad933f572c0",
                        ),
                    ),
                ),
                sources=tuple(Source(name, (f"{_LIBSVM_HOME}/{name}",)) for name in FILES),
                assemble=f"{_HERE}.rcv1:assemble",
            ),
        ),
    ),
    DataSet(
        name="mq2007",
        what="LETOR 4.0 MQ2007, QueryLevelNorm, in part: not comparable with published scores",
        size="59,135 of 69,623 rows, 1,692 queries, 46 features",
        terms=_LETOR_TERMS,
        how=(
            "Not fetched: this partial copy has no public home. Get the whole MQ2007 by hand from "
            f"{_LETOR_HOME} and read its files with sparserank.data.read_letor."
        ),
        loader=f"{_HERE}.letor_sets:mq2007",
        folder="letor/mq2007",
        editions=(
            Edition(
                (
                    Part(
                        "MQ2007_Querylevelnorm_partial_59135.txt",
                        (
                            "file:a831078f8a6d122163c6814b842e8a873cef7cfaf706fed4fd0d283bc0cdd806",
                            "text:8336cc4ddb577aee12ae4cbc36bb2e9d4bd1983a32855ac1f715c0d96129c122",
                        ),
                    ),
                )
            ),
        ),
    ),
    DataSet(
        name="mq2008",
        what="LETOR 4.0 MQ2008, QueryLevelNorm, five folds",
        size="15,211 rows, 784 queries, 46 features",
        terms=_LETOR_TERMS,
        how=(
            f"Not fetched: get MQ2008 by hand from {_LETOR_HOME} and put its S1.txt to S5.txt "
            "into $SPARSERANK_DATA/mq2008."
        ),
        loader=f"{_HERE}.letor_sets:mq2008",
        folder="letor/mq2008",
        editions=(
            Edition(
                (
                    Part(
                        "MQ2008_S1-S5.tar",
                        (
                            "file:004ec7e0c3998cb2f71d9123e82f089579ae150b8787aa871cb1a696a17bc25d",
                            "members:3b7c8ce74973f3ab4bfa8ba56dc0b0ba7ddc474a7ccd1db1b26d09b52c599e44",
                        ),
                    ),
                )
            ),
            Edition(_parts("text", _MQ2008)),
        ),
    ),
    DataSet(
        name="ohsumed",
        what="LETOR 3.0 OHSUMED, medical search, five folds, normalised in two ways",
        size="16,140 rows, 106 queries, 45 features",
        terms=_LETOR_TERMS,
        how=(
            f"Not fetched: get OHSUMED by hand from {_LETOR_HOME} and put its folders QueryLevelNorm and "
            "Feature-min into $SPARSERANK_DATA/ohsumed."
        ),
        loader=f"{_HERE}.letor_sets:ohsumed",
        folder="letor/ohsumed",
        editions=(
            Edition(
                (
                    Part(
                        "OHSUMED_testfolds.tar",
                        (
                            "file:693207bfbc92e7a3c48d8892d87866b2c9862b1f10109a0dbd97b5fed6ca93e4",
                            "members:01ee0c0e9876f8c2cef33748bb4f9f4899d7d400fc71eaf86b74ffc56c189b97",
                        ),
                    ),
                )
            ),
            Edition(_parts("text", _OHSUMED)),
        ),
    ),
    DataSet(
        name="nfcorpus",
        what="medical search in plain words (NFCorpus)",
        size="3,395 documents, 2,563 train and 324 dev queries; BEIR's edition: 3,633 documents, 3,237 queries",
        terms="free for academic use; ask its authors for any other",
        how=(
            "BEIR's edition is fetched on first use (2 MB), or put nfcorpus.zip into $SPARSERANK_DATA/nfcorpus; the "
            "one with title queries is made from its authors' release and is not fetched. Do not compare the two."
        ),
        loader=f"{_HERE}.nfcorpus:load",
        editions=(
            Edition(_parts("text", _NFCORPUS)),
            Edition(
                parts=(
                    Part("nfcorpus.zip", ("file:efe5be03f8c5b86a5870102d0599d227c8c6e2484328e68c6522560385671b0b",)),
                ),
                sources=(
                    Source(
                        "nfcorpus.zip",
                        ("https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/nfcorpus.zip",),
                    ),
                ),
            ),
        ),
    ),
    DataSet(
        name="cranfield",
        what="abstracts on aerodynamics with questions and grades",
        size="1,400 documents, 225 queries, 1,837 judgments",
        terms="offered by the University of Glasgow; no licence is stated",
        how="Fetched on first use (0.5 MB) from the University of Glasgow; or unpack cran.tar.gz into "
        "$SPARSERANK_DATA/cranfield.",
        loader=f"{_HERE}.cranfield:load",
        editions=(
            Edition(
                parts=_parts("text", _CRANFIELD),
                sources=(Source("cran.tar.gz", (f"https://{_CRANFIELD_HOME}", f"http://{_CRANFIELD_HOME}")),),
                assemble=f"{_HERE}.cranfield:unpack",
            ),
        ),
    ),
    DataSet(
        name="pydocs",
        what="docstrings of numpy, scipy and scikit-learn: find an object by its summary",
        size="about 3,300 documents, 1,900 queries, 5,300 judgments",
        terms="BSD-3-Clause, as the packages themselves",
        how="Built from the packages installed, in a few seconds, and kept in the cache.",
        loader=f"{_HERE}.pydocs:load",
        here=f"{_HERE}.pydocs:cached_file",
    ),
)

REGISTRY = {row.name: row for row in _ROWS}
"""Every named set by its name, in the order in which they are listed."""
