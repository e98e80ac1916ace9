"""What estimators stand on: scikit-learn where it is installed, else as much of its habits as they use."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

try:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        OneToOneFeatureMixin,
        TransformerMixin,
    )
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted, validate_data

    SKLEARN = True
except ImportError:
    SKLEARN = False

    class NotFittedError(ValueError, AttributeError):
        """An estimator is used before it is fitted."""

    class BaseEstimator:
        """Parameters by the signature of ``__init__``."""

        @classmethod
        def _names(cls) -> list[str]:
            return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {name: getattr(self, name) for name in self._names()}

        def set_params(self, **params: Any):
            for name, value in params.items():
                if name not in self._names():
                    raise ValueError(f"{type(self).__name__} has no parameter {name}")
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            defaults = inspect.signature(type(self).__init__).parameters
            given = [
                f"{of}={value!r}"
                for of, value in self.get_params().items()
                if value is not defaults[of].default
            ]
            return f"{type(self).__name__}({', '.join(given)})"

    class TransformerMixin:
        def fit_transform(self, X: Any, y: Any = None, **how: Any):
            return self.fit(X, y, **how).transform(X)

    class ClassNamePrefixFeaturesOutMixin:
        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
            check_is_fitted(self)
            prefix = type(self).__name__.lower()
            return np.asarray([f"{prefix}{i}" for i in range(self._n_features_out)], dtype=object)

    class OneToOneFeatureMixin:
        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
            check_is_fitted(self)
            names = input_features if input_features is not None else getattr(self, "feature_names_in_", None)
            return np.asarray(
                [f"x{i}" for i in range(self.n_features_in_)] if names is None else names, dtype=object
            )

    def check_is_fitted(estimator: Any) -> None:
        if not hasattr(estimator, "n_features_in_"):
            raise NotFittedError(f"this {type(estimator).__name__} is not fitted yet")

    def validate_data(
        estimator: Any, X: Any, *, reset: bool = True, dtype: Any = None, accept_sparse: Any = False, **_: Any
    ):
        if hasattr(X, "tocsc"):
            if not accept_sparse:
                raise TypeError("a sparse matrix is given where a dense one is wanted")
        else:
            names = getattr(X, "columns", None)
            X = np.asarray(X)
            if X.dtype.kind not in "biuf" and X.dtype != object:
                raise ValueError(f"numbers are wanted, not {X.dtype}")
            if X.dtype not in (np.float32, np.float64):
                X = X.astype(np.float64)
            if X.ndim != 2:
                raise ValueError(
                    f"a matrix is wanted, samples × features, not an array of {X.ndim} dimensions"
                )
            if reset and names is not None and all(isinstance(name, str) for name in names):
                estimator.feature_names_in_ = np.asarray(names, dtype=object)
        if reset:
            estimator.n_features_in_ = X.shape[1]
        elif X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features as input"
            )
        return X
