"""Ranker: the base class of all rankers, which saves and loads model files."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from ..data.files import PathLike
from ..data.formats.tensors import Tensors, write_tensors
from ..errors import ConfigError, ModelError, NotInstalled, SparseRankError
from ..parameters import Parameters
from .parameters_file import pack, unpack

State = tuple[dict[str, Any], dict[str, NDArray[Any]]]


class Ranker(Parameters):
    """A model with parameters that is saved as one file.

    A new ranker is one module with a subclass, and one line in `sparserank.base.registry`. The subclass defines
    `_state`, which returns the JSON values and the arrays that `fit` learned, and `_restore`, which reads them from a
    file. `save` and `sr.load` handle the parameters.
    """

    _file_kind: ClassVar[str]

    def _state(self) -> State:
        """Return the JSON values and the arrays that were learned; raise NotFitted before `fit`."""
        raise NotImplementedError

    def _restore(self, file: Tensors) -> None:
        """Set what `_state` returned; values that do not fit raise an error of SparseRank or a ValueError."""
        raise NotImplementedError

    def save(self, path: PathLike) -> None:
        """Write the model to one .safetensors file, which appears complete or not at all; `sr.load` reads it.

        Parameters
        ----------
        path : path-like
            The file; an existing one is replaced.

        Raises
        ------
        NotFitted
            The ranker has not been fitted.
        ConfigError
            A parameter has a type that a model file cannot hold, such as a function.
        """
        from .registry import registered_name

        settings, arrays = self._state()
        params, more = pack(self.get_params(deep=False))
        about = {"ranker": registered_name(type(self)), "params": params}
        write_tensors(path, self._file_kind, settings | about, arrays | more)

    @classmethod
    def from_file(cls, file: Tensors) -> Self:
        """Return the ranker that a file holds.

        Parameters
        ----------
        file : Tensors
            The content of the file, as `data.formats.tensors.read_tensors` returns it.

        Returns
        -------
        Ranker
            A fitted ranker.

        Raises
        ------
        ModelError
            The file is not consistent. The message starts with its path.
        """
        try:
            ranker = cls(**cls._file_params(file))
            ranker._restore(file)
        except (ModelError, NotInstalled):
            raise
        except (SparseRankError, TypeError, KeyError, ValueError) as error:
            raise ModelError(f"{file.path}: its settings do not fit: {error}") from None
        return ranker

    def _load_index(self, path: PathLike, index: PathLike | None) -> None:
        """Read the search index of the model file at `path`; only text rankers have one."""
        if index is not None:
            raise ConfigError(f"{path}: a {type(self).__name__} has no search index; leave 'index' out")

    @classmethod
    def _file_params(cls, file: Tensors) -> dict[str, Any]:
        """The parameters in a file, those of 0.1 under their new names."""
        renamed = cls._old_names()
        return {renamed.get(name, name): value for name, value in unpack(file.setting("params", dict), file).items()}
