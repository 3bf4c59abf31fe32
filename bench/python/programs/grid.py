"""A grid search of scikit-learn, which runs each fit of a model as a job of joblib."""

from __future__ import annotations

from typing import Any

import numpy
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from systems import WORKERS, System

FOLDS = 4


def long(system: System, tasks: int) -> object:
    """Support vector machines for 800 rows of 30 columns."""
    data = make_classification(800, 30, n_informative=10, flip_y=0.2, random_state=1)
    return _search(system, SVC(), {"C": numpy.logspace(-1, 2, tasks // FOLDS)}, data)


def short(system: System, tasks: int) -> object:
    """Trees of three splits for 60 rows of 4 columns. The score is computed by hand, because a scorer takes as long as a fit."""
    data = make_regression(60, 4, noise=5.0, random_state=1)
    model = DecisionTreeRegressor(max_depth=2, random_state=1)
    return _search(system, model, {"ccp_alpha": numpy.logspace(-3, 3, tasks // FOLDS)}, data, closeness)


def closeness(model: Any, rows: Any, expected: Any) -> float:
    return -float(numpy.square(model.predict(rows) - expected).mean())


def _search(
    system: System, model: object, grid: dict[str, object], data: tuple[object, object], scoring: object = None
) -> object:
    search = GridSearchCV(model, grid, cv=FOLDS, scoring=scoring, n_jobs=WORKERS, refit=False)
    with system.joblib():
        search.fit(*data)
    return int(search.best_index_), round(float(search.best_score_), 9)
