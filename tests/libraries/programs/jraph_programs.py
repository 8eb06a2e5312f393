"""Programs of jraph.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import jraph
import numpy as np

GRAPH = jraph.GraphsTuple(
    n_node=np.array([3]), n_edge=np.array([2]), nodes=np.arange(6.0, dtype="float32").reshape(3, 2),
    edges=np.ones((2, 1), "float32"), globals=np.ones((1, 1), "float32"),
    senders=np.array([0, 1]), receivers=np.array([2, 2]),
)  # fmt: skip


def readme():
    net = jraph.GraphNetwork(
        update_edge_fn=lambda e, s, r, g: e + s.sum(-1, keepdims=True) * 0.1,
        update_node_fn=lambda n, s, r, g: n + r,
        update_global_fn=lambda n, e, g: g + n.sum(-1, keepdims=True),
    )
    out = jax.jit(net)(GRAPH)
    return out.nodes, out.edges, out.globals


def convolution():
    net = jraph.GraphConvolution(
        lambda n: n * 2.0, add_self_edges=True, symmetric_normalization=True
    )
    f = lambda nodes: net(GRAPH._replace(nodes=nodes)).nodes.sum()
    return net(GRAPH).nodes, jax.grad(f)(jnp.asarray(GRAPH.nodes))


def attention():
    net = jraph.GAT(lambda n: n, lambda s, r, e: jnp.sum(s * r, -1, keepdims=True), lambda n: n)
    return net(GRAPH._replace(edges=None)).nodes


def batches():
    g = jraph.batch([GRAPH, GRAPH])
    padded = jraph.pad_with_graphs(g, 8, 6, 3)
    return padded.n_node, jraph.get_node_padding_mask(padded), [x.nodes for x in jraph.unbatch(g)]


def segments():
    ids = jnp.array([0, 0, 1, 1, 1])
    x = jnp.arange(5.0)
    return [
        f(x, ids, 2)
        for f in (
            jraph.segment_sum,
            jraph.segment_mean,
            jraph.segment_softmax,
            jraph.segment_variance,
            jraph.segment_normalize,
            jraph.segment_max,
        )
    ]
