"""What a word is: `Analyzer`. `tokens.tokenize` applies it to many texts at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import validation
from ..deprecated import renamed_attribute
from ..errors import ConfigError
from ..parameters import Parameters
from .compounds import Compounds
from .languages import (
    ACCENTS_OPTIONAL,
    AUTO,
    count_evidence,
    detect_language,
    listed_stop_words,
    script_of,
    split_names,
    stemmers,
    stop_words,
    word_script,
)
from .normalization import fold, fold_with_positions, strip_accents, word_pattern
from .segmentation import SEGMENTED, SEGMENTERS, segment, segmenter_version

if TYPE_CHECKING:
    from .tokens import Tokens


@dataclass(unsafe_hash=True, repr=False)
class Analyzer(Parameters):
    """Split texts into words. It is a scikit-learn transformer without state.

    A word is a run of letters, digits and underscores. Stop words are removed before stemming; n-grams consist of the
    words that are left, joined by a blank. Every language but English also folds compatibility forms, width and case
    (NFKC), keeps combining marks in words, and segments scripts that write no blanks.

    Parameters
    ----------
    language : str or None, default=None
        A language, such as "english", "german" or "japanese", or several of different scripts, such as
        "japanese+english". It selects the stemmer, the stop words and the normalization. "auto" segments by script;
        a fit then detects the languages of the collection (`detect`). None selects nothing.
    stem : str or None, default="auto"
        The Snowball language of the stemmer, or None for no stemming. "auto" is `language`.
    stop_words : str, collection of str or None, default="auto"
        Words to remove, or the language whose stop words are removed. "auto" is `language`.
    ngrams : int, default=1
        The longest sequence of neighbouring words to add; 2 adds pairs.
    lowercase : bool, default=True
        Whether to convert texts to lower case.
    shortest : int, default=2
        The smallest number of characters of a word; words of segmented scripts may be shorter.
    segmenter : {"auto", "bigrams", "jieba", "fugashi", "icu"} or None, default="auto"
        How Han, kana, Thai, Lao, Khmer and Myanmar are split: overlapping bigrams, or the words of a package
        (`pip install 'sparserank[segmenters]'`). "auto" is "bigrams" if texts are normalized, else None.
    normalize : bool or "auto", default="auto"
        Whether to fold compatibility forms and width (NFKC). "auto" does so for every language but English.
    accents : {"auto", "keep", "fold"}, default="auto"
        Whether stems lose the accents of Latin and Greek letters. "auto" folds them in Catalan, French, Greek,
        Italian, Portuguese and Spanish.
    compounds : bool or Compounds, default=False
        Whether the parts of a compound count too, as in German. A fit learns the parts from the collection (`resolve`).

    Examples
    --------
    >>> Analyzer("english", ngrams=2).tokens("The ranking of documents")
    ['rank', 'document', 'rank document']
    >>> Analyzer("japanese").tokens("ＣＳＳの値")
    ['css', 'の値']
    >>> Analyzer().fit_transform(["The ranking", "of documents"])
    [['the', 'ranking'], ['of', 'documents']]
    """

    language: str | None = None
    stem: str | None = "auto"
    stop_words: str | tuple[str, ...] | None = "auto"
    ngrams: int = 1
    lowercase: bool = True
    shortest: int = 2
    segmenter: str | None = "auto"
    normalize: bool | str = "auto"
    accents: str = "auto"
    compounds: bool | Compounds = False

    stopped = renamed_attribute("stopped", "stop_word_set")

    def __post_init__(self) -> None:
        validation.flag("lowercase", self.lowercase)
        validation.count("shortest", self.shortest, low=1, high=1000)
        validation.count("ngrams", self.ngrams, low=1, high=8)
        if self.language is not None and self.language != AUTO:
            split_names(self.language)
        if isinstance(self.stop_words, str):
            if self.stop_words not in (AUTO, "english"):
                validation.choice("stop_words", self.stop_words, (AUTO, *sorted(listed_stop_words())))
        elif self.stop_words is not None:
            self.stop_words = tuple(self.stop_words)
            if not all(isinstance(word, str) for word in self.stop_words):
                raise ConfigError(f"The 'stop_words' parameter must hold words. Got {self.stop_words!r:.100} instead.")
        if self.stem is not None and self.stem != AUTO:
            validation.choice("stem", self.stem, sorted(stemmers()))
        if self.segmenter is not None:
            validation.choice("segmenter", self.segmenter, (AUTO, *SEGMENTERS))
            segmenter_version(self.segmenter)
        if self.normalize != AUTO:
            validation.flag("normalize", self.normalize)
        validation.choice("accents", self.accents, (AUTO, "keep", "fold"))
        if not isinstance(self.compounds, Compounds):
            validation.flag("compounds", self.compounds)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages by name; none if they are not known."""
        return () if self.language in (None, AUTO) else tuple(self.language.split("+"))

    @property
    def stemmers(self) -> tuple[str, ...]:
        """The Snowball languages of the stemmers; each stems the words of its script."""
        if self.stem == AUTO:
            return tuple(name for name in self.languages if name in stemmers())
        return () if self.stem is None else (self.stem,)

    @property
    def stemmer(self) -> str | None:
        """The Snowball language of the first stemmer, or None."""
        return next(iter(self.stemmers), None)

    @property
    def stop_word_set(self) -> frozenset[str]:
        """The words that are removed."""
        return _stop_word_set(self.language, self.stop_words, self.normalizes)

    @property
    def normalizes(self) -> bool:
        """Whether texts are normalized (NFKC)."""
        return self.language not in (None, "english", "porter") if self.normalize == AUTO else bool(self.normalize)

    @property
    def splits_scripts(self) -> str | None:
        """The segmenter of scripts without blanks, or None."""
        return ("bigrams" if self.normalizes else None) if self.segmenter == AUTO else self.segmenter

    @property
    def folds_accents(self) -> bool:
        """Whether stems lose their accents."""
        return self.accents == "fold" or (self.accents == AUTO and not ACCENTS_OPTIONAL.isdisjoint(self.languages))

    @property
    def is_plain(self) -> bool:
        """Whether every run of word characters is one word: no normalization, segmentation or accents."""
        return not (self.normalizes or self.splits_scripts or self.folds_accents or self.compounds)

    def resolve(self, *fields: Iterable[str]) -> Analyzer:
        """Return the analyzer with what texts tell: the detected languages, and the parts of compounds.

        Parameters
        ----------
        *fields : iterables of str
            The texts.
        """
        found = self.detect(*fields)
        if found.compounds is not True:
            return found
        documents: Counter[str] = Counter()
        for texts in fields:
            for names, tokens, stops in found._words_of(texts):
                text_of = np.repeat(np.arange(len(stops)), np.diff(stops, prepend=0))
                distinct = np.unique(text_of * np.int64(len(names)) + tokens) % max(len(names), 1)
                documents.update(dict(zip(names, np.bincount(distinct, minlength=len(names)).tolist(), strict=True)))
        removed = found.stop_word_set
        return replace(found, compounds=Compounds({w: n for w, n in documents.items() if w not in removed}))

    def _words_of(self, texts: Iterable[str]) -> Iterator[Tokens]:
        """Yield the words of texts as they are spelled, in chunks."""
        from .tokens import tokenize

        plain = replace(self, segmenter=None, stem=None, stop_words=None, ngrams=1, accents="keep", compounds=False)
        return tokenize(plain, texts)

    def detect(self, *fields: Iterable[str]) -> Analyzer:
        """Return an analyzer with the languages of the texts if `language` is "auto", else this one.

        Parameters
        ----------
        *fields : iterables of str
            The texts.

        Examples
        --------
        >>> Analyzer("auto").detect(["Der Baum und die Blätter", "Das ist ein Haus"]).language
        'german'
        """
        if self.language != AUTO:
            return self
        return self.with_evidence(sum((self.evidence(texts) for texts in fields), Counter()))

    def evidence(self, texts: Iterable[str]) -> Counter[str]:
        """Count what tells the language of texts; counts of several collections add up.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        """
        out = Counter[str]()
        for names, tokens, _ in self._words_of(texts):
            out += count_evidence(zip(names, np.bincount(tokens, minlength=len(names)).tolist(), strict=True))
        return out

    def with_evidence(self, evidence: Counter[str]) -> Analyzer:
        """Return an analyzer of the detected languages; it normalizes texts even if they are English.

        Parameters
        ----------
        evidence : Counter
            What `evidence` returned.
        """
        normalize = True if self.normalize == AUTO else self.normalize
        return replace(self, language=detect_language(evidence), normalize=normalize)

    def set_params(self, **params: Any) -> Self:
        """Change parameters; see `Analyzer` for their names.

        Parameters
        ----------
        **params : object
            New values by name.
        """
        type(self)(**self.get_params(deep=False) | {name: params[name] for name in params if name in self._names()})
        return super().set_params(**params)

    def tokens(self, text: str) -> list[str]:
        """Return the words of one text, followed by its n-grams.

        Parameters
        ----------
        text : str
            The text.

        Examples
        --------
        >>> Analyzer("english").tokens("Red apples")
        ['red', 'appl']
        """
        from .tokens import tokenize

        return [names[token] for names, tokens, _ in tokenize(self, [text]) for token in tokens]

    def fit(self, texts: Any = None, y: Any = None) -> Self:
        """Do nothing: an analyzer learns nothing from texts.

        Parameters
        ----------
        texts, y : object, default=None
            Ignored.
        """
        return self

    def transform(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the tokens of every text.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        """
        from .tokens import checked_texts

        return [self.tokens(text) for text in checked_texts(texts)]

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> list[list[str]]:
        """Return the tokens of every text; the same as `transform`.

        Parameters
        ----------
        texts, y : iterable of str, and object
            The texts; `y` is ignored.
        """
        return self.transform(texts)

    def normal_forms(self, words: list[str]) -> list[str | None]:
        """Return the stem of each word, or None for a stop word.

        Parameters
        ----------
        words : list of str
            Words in lower case.
        """
        removed = self.stop_word_set
        forms: list[str | None] = [None if word in removed else word for word in words]
        languages = self.stemmers
        for language in languages:
            import Stemmer

            stemmer = Stemmer.Stemmer(language, maxCacheSize=0)
            if len(languages) == 1:
                forms = [stem or None for stem in stemmer.stemWords([word or "" for word in forms])]
                break
            chosen = _in_script(forms, script_of(language))
            for i, stem in zip(chosen, stemmer.stemWords([forms[i] or "" for i in chosen]), strict=True):
                forms[i] = stem or None
        return [form and strip_accents(form) for form in forms] if self.folds_accents else forms

    def split_runs(self, runs: list[str]) -> list[list[tuple[int, int, str]]]:
        """Return start, end and normal form of each word of each run of word characters.

        Parameters
        ----------
        runs : list of str
            Runs, as a normalized text has them.

        Examples
        --------
        >>> Analyzer("chinese").split_runs(["css属性值"])
        [[(0, 3, 'css'), (3, 5, '属性'), (4, 6, '性值')]]
        """
        segmenter, shortest = self.splits_scripts, self.shortest
        bounds: list[tuple[int, int, int]] = []
        bigrams: set[int] = set()  # positions in `bounds`: a bigram is no word, so it is no stop word and has no stem
        for number, run in enumerate(runs):
            if segmenter is None or run.isascii() or not SEGMENTED.search(run):
                bounds += [(number, 0, len(run))] if len(run) >= shortest else []
                if isinstance(self.compounds, Compounds):
                    bounds += [(number, start, end) for start, end in self.compounds.split(run)]
            else:
                for start, end, kind in segment(segmenter, run):
                    if kind != "run" or end - start >= shortest:
                        if kind == "bigram":
                            bigrams.add(len(bounds))
                        bounds.append((number, start, end))
        out: list[list[tuple[int, int, str]]] = [[] for _ in runs]
        words = [runs[number][start:end] for number, start, end in bounds]
        forms = self.normal_forms(words)
        for at, (number, start, end) in enumerate(bounds):
            form = words[at] if at in bigrams else forms[at]
            if form is not None:
                out[number].append((start, end, form))
        return out

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """Return start and end of each word in the text as it is, and its normal form; no n-grams.

        Parameters
        ----------
        text : str
            The text.

        Examples
        --------
        >>> text = "Ｒｅｄ apples"
        >>> [(text[start:end], form) for start, end, form in Analyzer("english", normalize=True).spans(text)]
        [('Ｒｅｄ', 'red'), ('apples', 'appl')]
        """
        if self.normalizes:
            folded, at = fold_with_positions(text, self.lowercase)
        elif self.lowercase and len(folded := text.lower()) != len(text):  # a letter may become two in lower case
            at = [i for i, letter in enumerate(text) for _ in letter.lower()] + [len(text)]
        else:
            folded, at = text.lower() if self.lowercase else text, None
        runs = [(match[0], match.start()) for match in word_pattern(self.normalizes).finditer(folded)]
        distinct = list(dict.fromkeys(run for run, _ in runs))
        words = dict(zip(distinct, self.split_runs(distinct), strict=True))
        found = [(first + start, first + end, form) for run, first in runs for start, end, form in words[run]]
        return found if at is None else [(at[a], max(at[b], at[b - 1] + 1), form) for a, b, form in found]

    def __sklearn_is_fitted__(self) -> bool:
        """An analyzer needs no fit."""
        return True


def as_analyzer(value: Any) -> Analyzer:
    """Return the analyzer for a parameter: None is `Analyzer()`, a string names the language."""
    if isinstance(value, str | None):
        return Analyzer(value)
    if not isinstance(value, Analyzer):
        raise ConfigError(f"The 'analyzer' parameter must be an Analyzer, a language or None. Got {value!r:.100}.")
    return value


@lru_cache(maxsize=64)
def _stop_word_set(language: str | None, chosen: str | tuple[str, ...] | None, normalize: bool) -> frozenset[str]:
    if chosen is None or isinstance(chosen, str):
        names = (language or "").split("+") if chosen == AUTO else [chosen or ""]
        chosen = tuple(word for name in names for word in stop_words(name))
    return frozenset(fold(word, lowercase=True) for word in chosen) if normalize else frozenset(chosen)


def _in_script(words: list[str | None], script: str) -> list[int]:
    return [i for i, word in enumerate(words) if word and word_script(word) == script]
