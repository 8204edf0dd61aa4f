"""UCB-GLM (Li, Lu & Zhou 2017) with a sigmoid and a ridge: the likelihood maximized anew after every round."""

import numpy as np
from scipy.optimize import minimize


class UcbGLM:
    def __init__(self, dim, *, regularization):
        self.ridge, self.V, self.theta = regularization, regularization * np.eye(dim), np.zeros(dim)
        self.contexts, self.rewards = [], []

    def upper(self, contexts, alpha):
        inverse = np.linalg.inv(self.V)
        return np.array([x @ self.theta + alpha * np.sqrt(x @ inverse @ x) for x in contexts])

    def observe(self, x, reward):
        self.V = self.V + np.outer(x, x)
        self.contexts.append(x)
        self.rewards.append(reward)

    def learn(self):
        X, r = np.array(self.contexts), np.array(self.rewards)

        def loss(theta):
            z = X @ theta
            return np.sum(np.logaddexp(0, z) - r * z) + self.ridge * theta @ theta / 2

        def slope(theta):
            return X.T @ (1 / (1 + np.exp(-(X @ theta))) - r) + self.ridge * theta

        found = minimize(loss, np.zeros(X.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-10, "maxiter": 1000})
        self.theta = found.x
