"""Estimators and pipelines of scikit-learn, and the data that they are fitted to, all seeded."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from sklearn import (
    calibration,
    cluster,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    gaussian_process,
    impute,
    linear_model,
    mixture,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing,
    random_projection,
    svm,
    tree,
)
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification, make_regression
from sklearn.pipeline import make_pipeline, make_union
from tests.frontends.onnx.nodes import Array

SEED: Final[dict[str, Any]] = {"random_state": 0}


class Case(NamedTuple):
    """An estimator, and what it is fitted to."""

    estimator: Any
    x: Array
    y: Array | None = None


X, CLASSES = make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)
X = X.astype(np.float32)
TWO: Final = (CLASSES > 0).astype(np.int64)
NAMES: Final = np.array(["ant", "bee", "cat"])[CLASSES]

XR, Y = make_regression(300, 8, n_informative=5, noise=3.0, random_state=0)
XR, Y = XR.astype(np.float32), Y / 50
Y_TWO: Final = np.stack([Y, 2 * Y + XR[:, 0]], 1)
Y_POSITIVE: Final = np.abs(Y) + 0.1

GAPS: Final = np.where(np.arange(X.size).reshape(X.shape) % 7 == 2, np.float32(np.nan), X)
LEVELS: Final = np.random.default_rng(0).integers(0, 4, (300, 3))
COLORS: Final = np.random.default_rng(0).choice(np.array(["red", "green", "blue"], object), (300, 2))

_FORKS: Final = {"max_depth": 5, **SEED}
_TWO_MODELS: Final = [("tree", tree.DecisionTreeClassifier(**_FORKS)), ("line", linear_model.LogisticRegression())]
_TWO_REGRESSORS: Final = [("tree", tree.DecisionTreeRegressor(**_FORKS)), ("line", linear_model.LinearRegression())]

CLASSIFIERS: Final = [
    Case(linear_model.LogisticRegression(), X, CLASSES),
    Case(linear_model.LogisticRegression(), X, TWO),
    Case(linear_model.LogisticRegression(), X, NAMES),
    Case(linear_model.LogisticRegressionCV(cv=3), X, CLASSES),
    Case(linear_model.RidgeClassifier(), X, CLASSES),
    Case(linear_model.SGDClassifier(loss="log_loss", **SEED), X, CLASSES),
    Case(linear_model.Perceptron(**SEED), X, CLASSES),
    Case(svm.SVC(), X, CLASSES),
    Case(svm.SVC(kernel="poly"), X, CLASSES),
    Case(svm.NuSVC(), X, CLASSES),
    Case(svm.LinearSVC(**SEED), X, CLASSES),
    Case(tree.DecisionTreeClassifier(**_FORKS), X, NAMES),
    Case(tree.ExtraTreeClassifier(**_FORKS), X, CLASSES),
    Case(ensemble.RandomForestClassifier(10, **_FORKS), X, NAMES),
    Case(ensemble.ExtraTreesClassifier(10, **_FORKS), X, CLASSES),
    Case(ensemble.GradientBoostingClassifier(n_estimators=10, **SEED), X, CLASSES),
    Case(ensemble.AdaBoostClassifier(n_estimators=5, **SEED), X, CLASSES),
    Case(ensemble.BaggingClassifier(n_estimators=5, **SEED), X, CLASSES),
    Case(ensemble.VotingClassifier(_TWO_MODELS, voting="soft", flatten_transform=False), X, CLASSES),
    Case(ensemble.StackingClassifier(_TWO_MODELS, cv=2), X, CLASSES),
    Case(neighbors.KNeighborsClassifier(5), X, CLASSES),
    Case(naive_bayes.GaussianNB(), X, CLASSES),
    Case(naive_bayes.BernoulliNB(), X, CLASSES),
    Case(naive_bayes.MultinomialNB(), np.abs(X), CLASSES),
    Case(naive_bayes.ComplementNB(), np.abs(X), CLASSES),
    Case(neural_network.MLPClassifier((16, 8), max_iter=60, tol=1.0, **SEED), X, CLASSES),
    Case(discriminant_analysis.LinearDiscriminantAnalysis(), X, CLASSES),
    Case(discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1), X, CLASSES),
    Case(multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), X, CLASSES),
    Case(multiclass.OneVsOneClassifier(linear_model.LogisticRegression()), X, CLASSES),
    Case(calibration.CalibratedClassifierCV(svm.LinearSVC(**SEED), cv=2), X, CLASSES),
]

REGRESSORS: Final = [
    Case(linear_model.LinearRegression(), XR, Y),
    Case(linear_model.LinearRegression(), XR, Y_TWO),
    Case(linear_model.Ridge(), XR, Y),
    Case(linear_model.Lasso(0.01), XR, Y),
    Case(linear_model.ElasticNet(0.01), XR, Y),
    Case(linear_model.BayesianRidge(), XR, Y),
    Case(linear_model.ARDRegression(), XR, Y),
    Case(linear_model.HuberRegressor(), XR, Y),
    Case(linear_model.RANSACRegressor(**SEED), XR, Y),
    Case(linear_model.SGDRegressor(**SEED), XR, Y),
    Case(linear_model.PoissonRegressor(), XR, Y_POSITIVE),
    Case(linear_model.TweedieRegressor(), XR, Y),
    Case(linear_model.GammaRegressor(), XR, Y_POSITIVE),
    Case(linear_model.QuantileRegressor(alpha=0.01), XR, Y),
    Case(svm.SVR(), XR, Y),
    Case(svm.NuSVR(), XR, Y),
    Case(svm.LinearSVR(**SEED), XR, Y),
    Case(tree.DecisionTreeRegressor(**_FORKS), XR, Y),
    Case(tree.DecisionTreeRegressor(**_FORKS), XR, Y_TWO),
    Case(ensemble.RandomForestRegressor(10, **_FORKS), XR, Y),
    Case(ensemble.ExtraTreesRegressor(10, **_FORKS), XR, Y),
    Case(ensemble.GradientBoostingRegressor(n_estimators=10, **SEED), XR, Y),
    Case(ensemble.AdaBoostRegressor(n_estimators=5, **SEED), XR, Y),
    Case(ensemble.BaggingRegressor(n_estimators=5, **SEED), XR, Y),
    Case(ensemble.VotingRegressor(_TWO_REGRESSORS), XR, Y),
    Case(ensemble.StackingRegressor(_TWO_REGRESSORS, cv=2), XR, Y),
    Case(neighbors.KNeighborsRegressor(5), XR, Y),
    Case(neural_network.MLPRegressor(hidden_layer_sizes=(16, 8), max_iter=60, tol=1.0, **SEED), XR, Y),
    Case(gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.RBF(2.0), alpha=0.1), XR, Y),
    Case(cross_decomposition.PLSRegression(2), XR, Y),
    Case(multioutput.MultiOutputRegressor(linear_model.Ridge()), XR, Y_TWO),
]

TRANSFORMERS: Final = [
    Case(preprocessing.StandardScaler(), X),
    Case(preprocessing.MinMaxScaler(), X),
    Case(preprocessing.MaxAbsScaler(), X),
    Case(preprocessing.RobustScaler(), X),
    Case(preprocessing.Normalizer(), X),
    Case(preprocessing.Normalizer("l1"), X),
    Case(preprocessing.Binarizer(threshold=0.3), X),
    Case(preprocessing.PolynomialFeatures(2), X),
    Case(preprocessing.PowerTransformer(), X),
    Case(preprocessing.KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), X),
    Case(preprocessing.OneHotEncoder(sparse_output=False), LEVELS),
    Case(preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore"), COLORS),
    Case(preprocessing.OrdinalEncoder(), COLORS),
    Case(impute.SimpleImputer(), GAPS),
    Case(decomposition.PCA(3), X),
    Case(decomposition.TruncatedSVD(3), X),
    Case(decomposition.KernelPCA(3, kernel="rbf"), X),
    Case(cluster.KMeans(3, n_init=2, **SEED), X),
    Case(feature_selection.SelectKBest(k=3), X, CLASSES),
    Case(feature_selection.VarianceThreshold(0.5), X),
    Case(random_projection.GaussianRandomProjection(3, **SEED), X),
]

OUTLIERS: Final = [
    Case(ensemble.IsolationForest(n_estimators=10, **SEED), X),
    Case(svm.OneClassSVM(), X),
    Case(neighbors.LocalOutlierFactor(novelty=True), X),
    Case(mixture.GaussianMixture(3, **SEED), X),
]

_COLUMNS: Final = [("a", preprocessing.StandardScaler(), [0, 1]), ("b", "passthrough", [4]), ("c", "drop", [5])]

PIPELINES: Final = [
    Case(make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()), X, NAMES),
    Case(make_pipeline(impute.SimpleImputer(), ensemble.RandomForestClassifier(5, **_FORKS)), GAPS, CLASSES),
    Case(make_pipeline(make_union(decomposition.PCA(2), feature_selection.SelectKBest(k=2)), svm.SVR()), XR, Y),
    Case(make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Ridge()), XR, Y),
    Case(make_pipeline(ColumnTransformer(_COLUMNS), tree.DecisionTreeClassifier(**_FORKS)), X, CLASSES),
    Case(make_pipeline(preprocessing.OneHotEncoder(), linear_model.LogisticRegression()), LEVELS, CLASSES),
    Case(make_pipeline(preprocessing.OneHotEncoder(), tree.DecisionTreeClassifier(**_FORKS)), COLORS, CLASSES),
    Case(make_pipeline(preprocessing.StandardScaler(), neighbors.KNeighborsClassifier(3)), X, CLASSES),
]

ALL: Final = [*PIPELINES, *CLASSIFIERS, *REGRESSORS, *TRANSFORMERS, *OUTLIERS]
