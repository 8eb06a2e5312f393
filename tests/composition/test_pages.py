"""Pages of transformed functions: what each package adds to them."""

import re

import numpy as np

import plait
import plait.numpy as pnp
from plait.sharding import PartitionSpec as P

X = np.float32([[1, 2, 3], [4, 5, 6]])


def loss(w):
    return pnp.sin(pnp.exp(w)).sum()


def rows(page, title):
    """Return the cells of the table below a heading."""
    body = page.partition(f"<h4>{title}")[2].partition("</table>")[0]
    return [re.findall("<td>(.*?)</td>", row) for row in body.split("<tr>")[2:]]


def test_residuals_with_bytes():
    page = plait.show(loss, plait.grad(loss))(X).html
    found = rows(page, "Values that a gradient keeps")
    assert {cells[1] for cells in found} == {"24"}  # six floats each
    assert len(found) == 2  # of exp its result, of sin the cosine
    assert f"Values that a gradient keeps: {24 * len(found)} bytes" in page


def test_a_function_without_gradient_has_no_such_table():
    page = plait.show(lambda n: n + 1)(3).html
    assert "a gradient keeps" not in page


def test_colours_tell_transformations_apart():
    def colours(f):
        page = plait.show(loss, f)(X).html
        return set(re.findall(r"--c:(hsl\([^)]*\))", page))

    (of_grad,) = colours(plait.grad(loss))
    (of_map,) = colours(plait.vmap(loss))
    assert of_grad != of_map
    assert colours(lambda w: loss(w)) == set()


def test_devices_and_collectives():
    mesh = plait.make_mesh((1,), ("d",))
    f = plait.shard_map(lambda v: plait.lax.psum(v, "d"), mesh=mesh, in_specs=P("d"), out_specs=P())
    page = plait.show(f)(X).html
    assert "on each device of Mesh(&#x27;d&#x27;: 1)" in page
    assert "sends 24 bytes over &#x27;d&#x27;" in page
