"""NMF, QMF, QMFQ and BQMF with scikit-learn's habits: samples in rows, X of n_samples × n_features.

The engine has features in rows: X.T ≈ U V or T(U V). ``components_`` is U.T, what ``transform`` returns is V.T.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ._base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
    check_is_fitted,
    validate_data,
)
from ._engine import call
from ._errors import DataError, OptionError, snake

Progress = Callable[[dict], None]


class ConvergenceWarning(UserWarning):
    """What a fit says of itself: epochs that ended too early, rows whose transport did not converge."""


def matrix(X: Any) -> Any:
    """Return X (samples × features) as the engine takes it: features in rows, dense or in compressed sparse rows."""
    if hasattr(X, "tocsc"):
        by_feature = X.tocsc()
        if not by_feature.has_canonical_format:
            by_feature = by_feature.copy()
            by_feature.sum_duplicates()
        values = by_feature.data
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        return {
            "columns": X.shape[0],
            "start": by_feature.indptr.astype(np.int64),
            "index": by_feature.indices.astype(np.uint32),
            "values": values,
        }
    return np.ascontiguousarray(np.asarray(X).T)


def missing(X: Any) -> bool:
    """Return whether cells of X are NaN."""
    return bool(np.isnan(X.data if hasattr(X, "tocsc") else X).any())


def seed(random_state: Any) -> str | None:
    """Return the seed of a random_state: None is the engine's default, so that a fit can be repeated."""
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)):
        return str(int(random_state))
    if isinstance(random_state, np.random.Generator):
        return str(int(random_state.integers(1 << 32)))
    return str(int(random_state.randint(1 << 31)))


class _Factorisation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all estimators share."""

    _method: str

    def _settings(self) -> dict[str, Any]:
        """Return the options of the engine, None for its defaults."""
        raise NotImplementedError

    def _rank(self, X: Any) -> int:
        return self.n_components

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self._positive()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _positive(self) -> bool:
        return True

    def _checked(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            accept_sparse="csc",
            ensure_all_finite="allow-nan",
            ensure_min_samples=1,
        )

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, model: Any = None):
        """Fit the model to X.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            NaN cells are missing: they are not fitted.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            At least 0; 2 counts as the sample twice, 0 as none.
        model : fitted estimator of this class, optional
            Where the fit goes on; X may have other samples of the same features.

        Returns
        -------
        self
        """
        self._fit(X, sample_weight, model)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, model: Any = None
    ) -> np.ndarray:
        """Fit the model to X and return the coordinates of its samples, (n_samples, n_components)."""
        self._fit(X, sample_weight, model)
        return self.embedding_

    def _fit(self, X: Any, sample_weight: Any = None, model: Any = None, **factors: Any) -> Any:
        X = self._checked(X, reset=True)
        if sample_weight is not None:
            factors["sampleWeights"] = np.asarray(sample_weight, np.float64)
        if model is not None:
            check_is_fitted(model)
            factors["model"] = model.model_
        options = {
            name: value for name, value in {**self._settings(), **factors}.items() if value is not None
        }
        if missing(X):
            options["missingValues"] = True
        progress = self.progress if callable(self.progress) else None
        try:
            self._take(
                call(progress=progress, rank=self._rank(X), x=matrix(X), options=options, **self._asked())
            )
        except DataError as error:
            raise _exchanged(error) from None
        return X

    def _asked(self) -> dict[str, Any]:
        """Return which call makes the fit, and what is its own."""
        return {"name": "fit", "method": self._method}

    def _take(self, of: dict[str, Any]) -> None:
        """Take what the engine says of a model."""
        self.model_ = of["bytes"].tobytes()
        self.components_ = np.ascontiguousarray(of["u"].T)
        self.embedding_ = np.ascontiguousarray(of["v"].T)
        self.history_ = of["history"]
        self.n_iter_ = int(of["best"])
        self.n_components_ = self.components_.shape[0]
        self._n_features_out = self.n_components_
        for text in of["warnings"]:
            warnings.warn(text, ConvergenceWarning, stacklevel=5)

    def _of_new(self, name: str, X: Any, **how: Any) -> Any:
        """Make a call of the model with samples."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        try:
            return call(name, model=self.model_, x=matrix(X), **how)
        except DataError as error:
            raise _exchanged(error) from None

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates of samples, (n_samples, n_components), new ones or those of the fit."""
        return np.ascontiguousarray(self._of_new("transform", X).T)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the negative mean divergence of samples from the model at their coordinates: higher is better."""
        return -self._of_new("score", X)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the negative mean divergence of each sample, (n_samples,): the lowest are the odd ones."""
        return -self._of_new("scores", X)

    def reconstruct(self, X: Any = None) -> np.ndarray:
        """Return what the model says of every cell, (n_samples, n_features), NaN cells included.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), optional
            New samples; without it the cells are those of the fitted samples.
        """
        check_is_fitted(self)
        said = call("reconstruct", model=self.model_) if X is None else self._of_new("predict", X)
        return np.ascontiguousarray(said.T)

    def curve(self, feature: int, values: Any) -> np.ndarray:
        """Return the map T of a feature at values of its row of U V. An NMF has no maps."""
        check_is_fitted(self)
        return call("map", model=self.model_, row=int(feature), values=np.asarray(values, np.float64).ravel())

    def save(self, path: Any) -> None:
        """Write the model as a file, which the command ``quantmf`` and the page read."""
        check_is_fitted(self)
        with open(path, "wb") as file:
            file.write(self.model_)

    @classmethod
    def load(cls, path: Any):
        """Read a model that any door of the package wrote, and that is of this method."""
        with open(path, "rb") as file:
            return cls.from_bytes(file.read())

    @classmethod
    def from_bytes(cls, model: Any):
        """Return the model that these bytes of a file are of."""
        of = call("open", model=model)
        if of["method"] != cls._method:
            raise OptionError(
                f"quantmf: this is a model by {of['method']}, and {cls.__name__} is for {cls._method}"
            )
        model = cls(n_components=of["u"].shape[1])
        model.n_features_in_ = of["u"].shape[0]
        model._take(of)
        return model


def _exchanged(error: DataError) -> DataError:
    """Return an error whose places are those of samples × features, and whose options are those of Python."""
    problem = re.sub(
        r"(\w+): (true|'\w+') takes",
        lambda m: f"{snake(m[1])}={m[2].capitalize() if m[2] == 'true' else m[2]} takes",
        error.problem,
    )
    if error.value is not None and error.value < 0 and "negative" in problem:
        problem = "Negative values in data: " + problem
    place = ", ".join(
        f"{name} {at}" for name, at in (("sample", error.column), ("feature", error.row)) if at >= 0
    )
    swapped = DataError(f"quantmf: {place}: {problem}" if place else f"quantmf: {problem}")
    swapped.row, swapped.column, swapped.value, swapped.problem = (
        error.column,
        error.row,
        error.value,
        problem,
    )
    return swapped


_LOSSES = {"frobenius": "frobenius", "kullback-leibler": "kl", "kl": "kl", "itakura-saito": 0}


class NMF(_Factorisation):
    """Non-negative matrix factorisation, X ≈ W H, by Newton's method with bounds.

    Parameters that scikit-learn's NMF has mean the same here.

    Parameters
    ----------
    n_components : int, default 10
    init : {None, 'random', 'nndsvd', 'custom'}, default None
        None and 'random': random factors; 'nndsvd': singular vectors; 'custom': W and H of ``fit_transform``.
    solver : {'newton', 'mu'}, default 'newton'
        'mu': multiplicative updates, the only ones for a ``beta_loss`` beside 1 and 2. Where values of a
        small matrix are missing 'newton' makes them, too, unless ``max_iter`` is given.
    beta_loss : float or {'frobenius', 'kullback-leibler', 'itakura-saito'}, default 'frobenius'
    max_iter : int, optional
        Epochs; 20 of Newton's method reach the loss of 200 to 1000 multiplicative updates.
    random_state : int, RandomState or Generator, optional
        None: always the same.
    patience, restarts : int, optional
        End after so many epochs without a lower loss; take the best of so many random starts.
    workers : int, optional
        Threads; the result does not depend on them.
    progress : callable, optional
        Called with a dict of phase, done, epoch, epochs and loss.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        H.
    reconstruction_err_ : float
        The norm of X - W H, or the square root of twice the divergence, over observed cells.
    n_iter_ : int
    history_ : array
        The mean divergence of a cell before the first epoch and after each.
    model_ : bytes
        The model's file, which Go, the command and the page read.

    References
    ----------
    Lee and Seung, "Learning the parts of objects by non-negative matrix factorization", Nature 401, 1999.
    """

    _method = "nmf"

    def __init__(
        self,
        n_components: int = 10,
        *,
        init: str | None = None,
        solver: str = "newton",
        beta_loss: str | float = "frobenius",
        max_iter: int | None = None,
        random_state: Any = None,
        patience: int | None = None,
        restarts: int | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.beta_loss = beta_loss
        self.max_iter = max_iter
        self.random_state = random_state
        self.patience = patience
        self.restarts = restarts
        self.workers = workers
        self.progress = progress

    def _settings(self) -> dict[str, Any]:
        if self.init not in (None, "random", "nndsvd", "custom"):
            raise OptionError(f"quantmf: init {self.init!r}: must be None, 'random', 'nndsvd' or 'custom'")
        if self.solver not in ("newton", "mu"):
            raise OptionError(f"quantmf: solver {self.solver!r}: must be 'newton' or 'mu'")
        loss: Any = self.beta_loss
        if isinstance(loss, str):
            if loss not in _LOSSES:
                raise OptionError(
                    f"quantmf: beta_loss {loss!r}: must be a number or one of {', '.join(_LOSSES)}"
                )
            loss = _LOSSES[loss]
        return {
            "loss": loss,
            "updates": "multiplicative" if self.solver == "mu" else None,
            "start": "svd" if self.init == "nndsvd" else None,
            "epochs": self.max_iter,
            "seed": seed(self.random_state),
            "patience": self.patience,
            "restarts": self.restarts,
            "workers": self.workers,
        }

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        W: Any = None,
        H: Any = None,
        *,
        sample_weight: Any = None,
        model: Any = None,
    ) -> np.ndarray:
        """Fit the model to X and return W, (n_samples, n_components).

        W and H are where the fit starts, with ``init='custom'``; sample_weight and model as in ``QMF.fit``.
        """
        if (self.init == "custom") != (W is not None and H is not None):
            raise OptionError("quantmf: W and H are given with init='custom', and only with it")
        factors = {}
        if W is not None:
            factors["init"] = {
                "u": np.ascontiguousarray(np.asarray(H, float).T),
                "v": np.ascontiguousarray(np.asarray(W, float).T),
            }
        X = self._fit(X, sample_weight, model, **factors)
        cells = X.shape[0] * X.shape[1]
        if not hasattr(X, "tocsc"):
            cells -= int(np.isnan(X).sum())
        self.reconstruction_err_ = float(np.sqrt(2 * self.history_[self.n_iter_] * cells))
        return self.embedding_

    def fit(
        self,
        X: Any,
        y: Any = None,
        W: Any = None,
        H: Any = None,
        *,
        sample_weight: Any = None,
        model: Any = None,
    ):
        """Fit the model to X; the others as in ``fit_transform``."""
        self.fit_transform(X, y, W, H, sample_weight=sample_weight, model=model)
        return self

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return W H of coordinates W, (n_samples, n_features)."""
        check_is_fitted(self)
        return np.asarray(X) @ self.components_


class ConsensusNMF(NMF):
    """Components on which NMFs from many seeds agree, as in cNMF, and samples fitted to them.

    Components of all fits that are near no other are left out, the rest are clustered, and the medians of the
    clusters are H.

    Parameters
    ----------
    n_components : int, default 10
    n_seeds : int, default 20
        Fits, from 2 to 1000.
    solver, beta_loss, max_iter, random_state, patience, workers
        As in NMF, of each fit.

    Attributes
    ----------
    components_, reconstruction_err_, n_iter_, history_, model_
        As in NMF, of the consensus; a component has a sum of 1.
    stability_ : array of shape (n_components,)
        The mean silhouette of each component's cluster: 1 where all fits have the same.
    silhouette_ : float
        Their mean over all that was clustered. Below 0.5 few components come back.
    left_out_ : int
        Components of the fits that were left out.
    losses_ : array of shape (n_seeds,)
        The mean divergence of each fit.

    References
    ----------
    Kotliar et al., "Identifying gene expression programs of cell-type identity and cellular activity with
    single-cell RNA-Seq", eLife 8:e43803, 2019.
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        n_seeds: int = 20,
        solver: str = "newton",
        beta_loss: str | float = "frobenius",
        max_iter: int | None = None,
        random_state: Any = None,
        patience: int | None = None,
        workers: int | None = None,
    ) -> None:
        super().__init__(
            n_components,
            solver=solver,
            beta_loss=beta_loss,
            max_iter=max_iter,
            random_state=random_state,
            patience=patience,
            workers=workers,
        )
        self.n_seeds = n_seeds

    def _asked(self) -> dict[str, Any]:
        return {"name": "consensus", "seeds": self.n_seeds}

    def _take(self, of: dict[str, Any]) -> None:
        super()._take(of)
        self.stability_, self.losses_ = of["stability"], of["losses"]
        self.silhouette_, self.left_out_ = float(of["overall"]), int(of["left"])


class _Scaled(_Factorisation):
    """What QMF and QMFQ share."""

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str | float = "kl",
        epochs: int | None = None,
        levels: int | None = None,
        epsilon: float | None = None,
        shrinkage: float | None = None,
        start: str | None = None,
        learning_rate: float | None = None,
        validation: float | None = None,
        patience: int | None = None,
        restarts: int | None = None,
        random_state: Any = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.epochs = epochs
        self.levels = levels
        self.epsilon = epsilon
        self.shrinkage = shrinkage
        self.start = start
        self.learning_rate = learning_rate
        self.validation = validation
        self.patience = patience
        self.restarts = restarts
        self.random_state = random_state
        self.workers = workers
        self.progress = progress

    def _positive(self) -> bool:
        return self.loss != "frobenius"

    def _settings(self) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "epochs": self.epochs,
            "levels": self.levels,
            "epsilon": self.epsilon,
            "shrinkage": self.shrinkage,
            "start": self.start,
            "learningRate": self.learning_rate,
            "validation": self.validation,
            "patience": self.patience,
            "restarts": self.restarts,
            "seed": seed(self.random_state),
            "workers": self.workers,
        }

    def _take(self, of: dict[str, Any]) -> None:
        super()._take(of)
        self.bend_ = of["bend"]


class QMF(_Scaled):
    """Factorisation with one increasing map a feature, X ≈ T(W H): for features whose scales do not fit each other.

    Parameters
    ----------
    n_components : int, default 10
    loss : {'kl', 'frobenius'} or float, default 'kl'
        'frobenius' takes negative values.
    epochs, levels, epsilon, shrinkage, start, learning_rate : optional
        Options of the fit; None leaves them to the package, which chooses start and shrinkage by hidden cells.
    validation : float, optional
        The share of cells that is hidden to choose the epoch.
    patience, restarts, random_state, workers, progress : see NMF

    Attributes
    ----------
    components_, history_, n_iter_, model_ : see NMF
    embedding_ : array of shape (n_samples, n_components)
    bend_ : array of shape (n_features,)
        How far each map is from a straight line.

    References
    ----------
    Cuturi, Teboul, Niles-Weed and Vert, "Supervised Quantile Normalization for Low-rank Matrix Approximation", ICML 2020.
    """

    _method = "qmf"


class QMFQ(_Scaled):
    """Factorisation of the normalised matrix, X ≈ T(W H), W H ≈ T'(X): parameters and attributes of QMF.

    References
    ----------
    Cuturi, Teboul, Niles-Weed and Vert, "Supervised Quantile Normalization for Low-rank Matrix Approximation", ICML 2020.
    """

    _method = "qmfq"

    def normalize(self, X: Any) -> np.ndarray:
        """Return T'(X), (n_samples, n_features): samples on the scales on which the model has low rank."""
        return np.ascontiguousarray(self._of_new("normalize", X).T)


class BQMF(_Factorisation):
    """Bayesian factorisation with one increasing map a feature: the best single predictor of missing cells.

    Parameters
    ----------
    n_components : int, optional
        None: as many as the data bear, at most 50; components without use fade.
    loss : {'kl', 'frobenius'}, optional
        In which ``score`` and the estimate of its error are; the model takes any finite numbers.
    epochs, validation, random_state, workers, progress : see QMF

    Attributes
    ----------
    components_, embedding_, history_, n_iter_, model_, bend_ : see QMF
    relevance_ : array of shape (n_components,)
        The share of each component in the variance of a feature.
    leave_one_out_ : float
        An estimate of the loss on cells that the fit has not seen.
    """

    _method = "bqmf"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        loss: str | None = None,
        epochs: int | None = None,
        validation: float | None = None,
        random_state: Any = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.epochs = epochs
        self.validation = validation
        self.random_state = random_state
        self.workers = workers
        self.progress = progress

    def _rank(self, X: Any) -> int:
        return 0 if self.n_components is None else self.n_components

    def _positive(self) -> bool:
        return False

    def _settings(self) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "epochs": self.epochs,
            "validation": self.validation,
            "seed": seed(self.random_state),
            "workers": self.workers,
        }

    def _take(self, of: dict[str, Any]) -> None:
        super()._take(of)
        self.bend_, self.relevance_, self.leave_one_out_ = of["bend"], of["relevance"], of["leaveOneOut"]

    def updated(self, X: Any) -> BQMF:
        """Return a model that has learnt from new samples X too; its own samples stay those of the fit."""
        of = copy.copy(self)
        of._take(self._of_new("updated", X))
        return of

    def median(self) -> np.ndarray:
        """Return the median of every cell of the fitted samples, (n_samples, n_features)."""
        return self._cells("median")

    def deviation(self) -> np.ndarray:
        """Return the standard deviation of every cell, noise included."""
        return self._cells("deviation")

    def distances(self) -> np.ndarray:
        """Return coordinates of the fitted samples, (n_samples, r), whose distances are those of rows of W H.

        It is what to cluster or to draw; ``embedding_`` is not, of which every column has one variance, however
        weak its component is. r is the number of components that are alive.
        """
        return self._cells("embedding")

    def interval(self, p: float = 0.95, X: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of the central interval of every cell that holds it with probability p.

        Parameters
        ----------
        p : float, between 0 and 1
        X : array of shape (n_samples, n_features), optional
            New samples; without it the cells are those of the fitted samples.
        """
        check_is_fitted(self)
        of = (
            call("interval", model=self.model_, p=float(p))
            if X is None
            else self._of_new("predictInterval", X, p=float(p))
        )
        return np.ascontiguousarray(of["low"].T), np.ascontiguousarray(of["high"].T)

    def _cells(self, name: str) -> np.ndarray:
        check_is_fitted(self)
        return np.ascontiguousarray(call(name, model=self.model_).T)


class BQMFImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills in missing cells by a BQMF; observed cells stay as they are.

    Parameters
    ----------
    n_components, epochs, random_state, workers, progress : see BQMF

    Attributes
    ----------
    estimator_ : BQMF
        With the uncertainty of every cell: ``interval``, ``deviation``.

    Notes
    -----
    ``fit_transform`` fills the fitted samples in by all that the fit has learnt of them; ``transform`` places
    samples one by one, and so differs a little from it for the same samples.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epochs: int | None = None,
        random_state: Any = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_components = n_components
        self.epochs = epochs
        self.random_state = random_state
        self.workers = workers
        self.progress = progress

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self, X: Any, reset: bool) -> np.ndarray:
        return validate_data(
            self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )

    def fit(self, X: Any, y: Any = None):
        """Fit the model to X, (n_samples, n_features); NaN cells are missing."""
        X = self._checked(X, reset=True)
        self.estimator_ = BQMF(**self.get_params()).fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit the model to X and return X with its NaN cells filled in."""
        self.fit(X)
        X = self._checked(X, reset=False)
        return _filled(X, self.estimator_.reconstruct) if np.isnan(X).any() else X.copy()

    def transform(self, X: Any) -> np.ndarray:
        """Return samples, (n_samples, n_features), with their NaN cells filled in."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        return _filled(X, lambda: self.estimator_.reconstruct(X)) if np.isnan(X).any() else X.copy()


def _filled(X: np.ndarray, said: Callable[[], np.ndarray]) -> np.ndarray:
    """Return X with what is said in the place of NaN."""
    return np.where(np.isnan(X), said(), X).astype(X.dtype)
