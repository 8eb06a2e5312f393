"""Programs of mujoco-mjx.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

BALL = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="1 1 .01"/>
    <body pos="0 0 0.3"><joint type="free"/><geom size=".1" mass="1"/></body>
  </worldbody>
</mujoco>
"""
ARM = """
<mujoco>
  <option timestep="0.01" integrator="Euler" solver="Newton"/>
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="s" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size=".03" fromto="0 0 0 0.4 0 0"/>
      <body name="b" pos="0.4 0 0">
        <joint name="e" type="hinge" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0.4 0 0"/>
        <site name="tip" pos="0.4 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="s" gear="2"/><motor joint="e"/></actuator>
  <sensor><framepos objtype="site" objname="tip"/></sensor>
</mujoco>
"""


def _model(text):
    model = mujoco.MjModel.from_xml_string(text)
    return mjx.put_model(model), model


def readme():
    model, _ = _model(BALL)

    @jax.vmap
    def batched_step(vel):
        data = mjx.make_data(model)
        data = data.replace(qvel=data.qvel.at[0].set(vel))
        return mjx.step(model, data).qpos[0]

    return batched_step(jnp.arange(0.0, 1.0, 0.25))


def kinematics():
    model, _ = _model(ARM)
    data = mjx.make_data(model)
    data = data.replace(qpos=jnp.array([0.3, -0.5]))
    data = jax.jit(mjx.forward)(model, data)
    return data.site_xpos, data.xpos, data.qM if hasattr(data, "qM") else data.qacc, data.sensordata


def actuated_arm():
    model, _ = _model(ARM)
    data = mjx.make_data(model)

    def body(d, t):
        d = d.replace(ctrl=jnp.array([jnp.sin(t), 0.1 * t]))
        d = mjx.step(model, d)
        return d, d.qpos

    return jax.jit(lambda d: jax.lax.scan(body, d, jnp.linspace(0, 1, 20))[1])(data)


def derivatives():
    model, _ = _model(ARM)
    data = mjx.make_data(model)

    def tip(q):
        d = mjx.kinematics(model, data.replace(qpos=q))
        return d.site_xpos[0]

    return jax.jacfwd(tip)(jnp.array([0.3, -0.5])), jax.jacrev(tip)(jnp.array([0.3, -0.5]))
