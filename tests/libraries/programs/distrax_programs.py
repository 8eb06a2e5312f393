"""Programs of distrax: the README's, distributions, bijectors, mixtures, chains.

Invariant: each returns numbers.
"""

import distrax
import jax
import jax.numpy as jnp
import numpy as np

_K = jax.random.PRNGKey(0)
_X = jnp.asarray(np.random.default_rng(0).uniform(0.1, 0.9, size=(5,)).astype("float32"))


def readme():
    mu = jnp.array([-1.0, 0.0, 1.0])
    sigma = jnp.array([0.1, 0.2, 0.3])
    dist = distrax.MultivariateNormalDiag(mu, sigma)
    samples = dist.sample(seed=jax.random.PRNGKey(1234))
    return samples, dist.log_prob(samples)


def distributions():
    found = []
    for dist in (
        distrax.Normal(0.3, 1.5),
        distrax.Laplace(0.3, 1.5),
        distrax.Logistic(0.3, 1.5),
        distrax.Gumbel(0.3, 1.5),
        distrax.Uniform(0.0, 1.0),
        distrax.Beta(2.0, 3.0),
        distrax.Gamma(2.0, 3.0),
        distrax.VonMises(0.3, 1.5),
        distrax.LogStddevNormal(0.3, 0.2),
    ):
        found.append((dist.log_prob(_X), dist.sample(seed=_K, sample_shape=(3,))))
    return found


def discrete():
    logits = jnp.array([0.1, 1.0, -0.5])
    categorical = distrax.Categorical(logits=logits)
    return (
        categorical.sample(seed=_K, sample_shape=(6,)),
        categorical.log_prob(jnp.arange(3)),
        categorical.entropy(),
        distrax.Bernoulli(probs=0.3).log_prob(jnp.array([0, 1])),
        distrax.OneHotCategorical(logits=logits).sample(seed=_K),
        distrax.Multinomial(5, logits=logits).log_prob(jnp.array([1.0, 3.0, 1.0])),
        distrax.EpsilonGreedy(logits, 0.2).prob(jnp.arange(3)),
        distrax.Softmax(logits, temperature=0.5).mode(),
    )


def divergences():
    p, q = distrax.Normal(0.0, 1.0), distrax.Normal(1.0, 2.0)
    a, b = distrax.Categorical(logits=jnp.ones(3)), distrax.Categorical(logits=_X[:3])
    m = distrax.MultivariateNormalFullCovariance(jnp.zeros(2), jnp.array([[2.0, 0.3], [0.3, 1.0]]))
    n = distrax.MultivariateNormalDiag(jnp.ones(2), jnp.ones(2))
    return p.kl_divergence(q), q.cross_entropy(p), a.kl_divergence(b), m.kl_divergence(n)


def multivariate():
    scale = jnp.array([[1.0, 0.0], [0.5, 2.0]])
    dist = distrax.MultivariateNormalTri(jnp.zeros(2), scale)
    return dist.sample(seed=_K, sample_shape=(3,)), dist.log_prob(jnp.ones(2)), dist.covariance()


def bijectors():
    found = []
    for bijector in (
        distrax.ScalarAffine(1.0, 2.0),
        distrax.Tanh(),
        distrax.Sigmoid(),
        distrax.Chain([distrax.ScalarAffine(0.1, 0.5), distrax.Sigmoid()]),
        distrax.Inverse(distrax.Tanh()),
        distrax.Lambda(jnp.exp),
        distrax.RationalQuadraticSpline(jnp.linspace(-1, 1, 13), 0.0, 1.0),
    ):
        y, logdet = bijector.forward_and_log_det(_X)
        found.append((y, logdet, bijector.inverse(y)))
    return found


def transformed():
    dist = distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Lambda(jnp.exp))
    block = distrax.Transformed(
        distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)),
        distrax.Block(distrax.Tanh(), 1),
    )
    y, logp = block.sample_and_log_prob(seed=_K)
    return dist.log_prob(_X), dist.sample(seed=_K), y, logp


def mixtures():
    dist = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])),
        distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 1.0])),
    )
    return dist.log_prob(_X), dist.sample(seed=_K, sample_shape=(3,)), dist.mean()


def markov():
    model = distrax.HMM(
        trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
        init_dist=distrax.Categorical(probs=jnp.array([0.5, 0.5])),
        obs_dist=distrax.Normal(jnp.array([0.0, 1.0]), jnp.array([0.3, 0.3])),
    )
    return model.forward_backward(_X), model.viterbi(_X)


def learning():
    def loss(params, x):
        return -distrax.Normal(params[0], jnp.exp(params[1])).log_prob(x).mean()

    params = jnp.zeros(2)
    for _ in range(5):
        params = params - 0.5 * jax.jit(jax.grad(loss))(params, _X)
    by_row = jax.vmap(lambda m: distrax.Normal(m, 1.0).entropy())(_X)
    return params, by_row


def flows():
    layer = distrax.MaskedCoupling(
        jnp.array([True, False, True, False, True]),
        lambda x: jnp.stack([x.sum() * jnp.ones(5), jnp.ones(5)], -1),
        lambda p: distrax.ScalarAffine(p[..., 0], p[..., 1]),
    )
    y, logdet = layer.forward_and_log_det(_X)
    return y, logdet, layer.inverse(y)
