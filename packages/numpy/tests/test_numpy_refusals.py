"""Wrong arguments: where numpy raises, plait.numpy does, in three parts and of the same class.

One right call of every function is given below; each of its arguments is replaced, one at a time,
by what is wrong for most of them.  What numpy refuses has to be refused, on arrays and on tracers,
but for what docs/numpy.md says is taken.

Invariant: nothing but an error of Plait comes out, with a line and something to write; a call that
numpy refuses compiles nothing.
"""

import contextlib
import inspect
import re
import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import AxisError, DimMismatch, NotAnArrayError, PlaitError, SubscriptError

# what stands for arguments in the calls
F4 = np.float32
Q = np.random.default_rng(0).normal(size=(3, 3)).astype(F4) + 3 * np.eye(3, dtype=F4)
M = np.arange(12, dtype=F4).reshape(3, 4) / 8 - F4(0.5)
V = np.array([0.3, 0.1, 0.2, 0.5, 0.4], F4)
V3 = np.arange(3, dtype=F4) + 1
NAMES = {
    "Q": Q, "M": M, "V": V, "V3": V3, "P": Q @ Q.T, "A": np.arange(24, dtype=F4).reshape(2, 3, 4),
    "S": np.arange(5, dtype=F4), "V4": np.arange(4, dtype=F4) + 1, "M1": np.ones((1, 3), F4),
    "I": np.array([1, 0, 2, 1, 3], np.int32), "I3": np.array([0, 1, 0], np.int32),
    "B": np.array([True, False, True, True, False]), "B3": np.array([True, False, True]),
    "U": np.array([3, 200], np.uint8), "IM": np.zeros((1, 4), np.int32),
    "T4": np.eye(4, dtype=F4).reshape(2, 2, 2, 2), "E2": np.ones((2, 2), F4),
    "s34": (3, 4), "s4": (4,), "s234": (2, 3, 4), "s43": (4, 3), "s22": (2, 2), "s10": (1, 0),
    "VV": (V3, V3 + 1), "MM": (M, M), "II": (np.array([0, 1]), np.array([0, 1])),
    "BB": [V3 > 1.5, V3 > 2], "QQ": [Q, Q, Q], "NN": [1.0, 2.0], "f": lambda v: v * 2,
    "g": lambda i, j: i + j, "bytes": b"\0" * 16, "f32": "float32", "i32": "int32", "ij": "ij->i",
}  # fmt: skip
WRONG = {
    "text": "text", "none": None, "complex": (M + 1j).astype(np.complex64), "fraction": 1.5,
    "negative": -1, "far": 99, "huge": 2**70, "shape": np.ones((2, 5), F4),
    "empty": np.zeros((0, 3), F4),
}  # fmt: skip

CALLS = """
abs,absolute,acos,acosh,angle,arccos,arccosh,arcsin,arcsinh,arctan,arctanh,asin,asinh,atan M
atanh,cbrt,ceil,conj,conjugate,cos,cosh,deg2rad,degrees,exp,exp2,expm1,fabs,fix,floor,frexp,i0 M
imag,iscomplex,iscomplexobj,isfinite,isinf,isnan,isneginf,isposinf,isreal,isrealobj,log,log10 M
log1p,log2,logical_not,modf,nan_to_num,negative,positive,rad2deg,radians,real,reciprocal,rint M
sign,signbit,sin,sinc,sinh,spacing,sqrt,square,tan,tanh,trunc,argwhere,array,asarray M
atleast_1d,block,copy,corrcoef,cov,diagonal,empty_like,fliplr,flipud,matrix_transpose,nonzero M
ones_like,ravel,rot90,shape,size,ndim,trace,transpose,tril,triu,unique,unstack,zeros_like M
linalg.diagonal,linalg.matrix_norm,linalg.matrix_rank,linalg.matrix_transpose,linalg.norm M
linalg.pinv,linalg.qr,linalg.svd,linalg.svdvals,linalg.trace,fft.fft2,fft.fftn,fft.ifft2 M
fft.ifftn,fft.irfft2,fft.irfftn,fft.rfft2,fft.rfftn M
bitwise_count,bitwise_invert,bitwise_not,invert,bincount,packbits I
add,arctan2,atan2,copysign,divide,divmod,equal,float_power,floor_divide,fmax,fmin,fmod M M
greater,greater_equal,heaviside,hypot,isclose,less,less_equal,logaddexp,logaddexp2 M M
logical_and,logical_or,logical_xor,maximum,minimum,mod,multiply,nextafter,not_equal,pow M M
power,remainder,subtract,true_divide,allclose,array_equal,array_equiv,inner,outer,kron M M
intersect1d,setdiff1d,setxor1d,union1d,isin,vecdot,linalg.vecdot M M
bitwise_and,bitwise_or,bitwise_xor,bitwise_left_shift,bitwise_right_shift,left_shift I I
right_shift,gcd,lcm,ix_ I I
ldexp,repeat,take V I
vdot,polyadd,polysub,polymul,polydiv,convolve,correlate,digitize,meshgrid,polyval,union1d V V
linalg.outer V V
dot,matmul,linalg.matmul Q M
sum,prod,mean,std,var,max,min,amax,amin,any,all,argmax,argmin,cumsum,cumprod,nansum,nanprod M 0
nanmean,nanstd,nanvar,nanmax,nanmin,nanargmax,nanargmin,nancumsum,nancumprod,ptp,median M 0
nanmedian,average,count_nonzero,flip,sort,argsort,expand_dims,size M 0
cumulative_sum,atleast_2d,atleast_3d,cumulative_prod,diag,diagflat,ediff1d,flatnonzero V
gradient,poly,polyder,polyint,roots,sort_complex,trapezoid,trim_zeros,unique,unique_all V
unique_counts,unique_inverse,unique_values,unwrap,vander,linalg.vector_norm,fft.fft V
fft.fftshift,fft.hfft,fft.ifft,fft.ifftshift,fft.ihfft,fft.irfft,fft.rfft V
append M M 0
apply_along_axis f 0 M
apply_over_axes sum M 0
arange 0 9 2
argpartition,array_split,partition V 2
astype M f32
bartlett,blackman,hamming,hanning,fft.fftfreq,fft.rfftfreq 4
broadcast_arrays,matvec M V4
broadcast_shapes s34 s4
broadcast_to M s234
choose I3 VV
clip M 0 2
column_stack,lexsort VV
compress B3 M 0
concat,dstack,hstack,vstack MM
concatenate,stack MM 0
cross,linalg.cross V3 V3
delete V 1
delete,diff,gradient,roll,take M 1 0
diag_indices,eye,identity,tri,tril_indices,triu_indices 3
diag_indices_from,tril_indices_from,triu_indices_from,linalg.cond,linalg.det,linalg.eig Q
linalg.eigvals,linalg.inv,linalg.slogdet Q
dsplit A 2
einsum ij M
empty,indices,ones,zeros s34
extract B V
fill_diagonal Q 0
frombuffer bytes
fromfunction g s34
full s34 1
full_like,pad,round,tril,linalg.norm M 1
geomspace 1 9 4
histogram,histogram_bin_edges V 3
histogram2d V V 3
histogramdd,vsplit M 3
hsplit,tile M 2
insert,put V 1 1
insert M 1 1 0
interp V S V
kaiser 4 1.5
linspace,logspace 0 1 5
mask_indices 3 triu
moveaxis,swapaxes M 0 1
nanpercentile,percentile V 50
nanquantile,quantile V 0.5
percentile M 50 0
permute_dims,transpose M s10
piecewise V3 BB NN
place V B V
polyfit S V 1
put_along_axis M IM 1.0 0
quantile M 0.5 0
ravel_multi_index II s34
repeat M 2 0
reshape M s43
resize M s22
result_type M V
rollaxis A 1
searchsorted S V
select BB VV
split V 5
squeeze M1
squeeze M1 0
take_along_axis M IM 0
tensordot,linalg.tensordot M V4 1
unpackbits U
unravel_index I s34
vecmat V3 M
where B V V
linalg.cholesky,linalg.eigh,linalg.eigvalsh P
linalg.lstsq M V3
linalg.matrix_power Q 2
linalg.multi_dot QQ
linalg.norm V 2 0
linalg.solve Q V3
linalg.tensorinv T4
linalg.tensorsolve T4 E2
fft.fft M 4 0
around M 1
einsum_path ij M
finfo f32
iinfo i32
promote_types,can_cast,issubdtype f32 i32
fromiter V f32
"""


def calls():
    """(name, arguments) of every right call."""
    for line in CALLS.strip().splitlines():
        names, *arguments = line.split()
        for name in names.split(","):
            yield name, arguments


def argument(word, module):
    if word in ("sum", "triu"):
        return getattr(module, word)
    return NAMES[word] if word in NAMES else eval(word)


def found(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


# what numpy refuses and plait takes: docs/numpy.md, "What numpy refuses, and is taken here"
TAKEN = {
    "astype", "can_cast", "diff", "ediff1d", "fft.fft2", "fft.fftn", "fft.fftshift", "fft.ifft2",
    "fft.ifftn", "fft.ifftshift", "finfo", "gradient", "linalg.norm", "logaddexp", "logaddexp2",
    "nanpercentile", "nanquantile", "percentile", "poly", "polyder", "polyint",
    "promote_types", "put", "quantile", "roots", "take", "unravel_index",
}  # fmt: skip
CHANGING = {"put", "place", "fill_diagonal", "put_along_axis"}


def of_its_class(error, numpys, wrong):
    """Whether an error is of numpy's class, as far as that says something."""
    if isinstance(numpys, AttributeError | OverflowError):  # of numpy's machinery
        return isinstance(error, ValueError | TypeError)
    if isinstance(error, ValueError) and isinstance(error, TypeError):
        return isinstance(numpys, ValueError | TypeError | IndexError)
    if isinstance(error, DimMismatch | AxisError | SubscriptError):  # of two things the other
        return isinstance(numpys, ValueError | TypeError | IndexError)
    return isinstance(error, type(numpys)) or wrong in ("text", "none")


def numpys_error(f, xs):
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in xs]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            f(*copies)
        except Exception as e:  # noqa: BLE001
            return e
    return None


def wrong_calls(name, arguments):
    """(which wrong, numpy's error, plait's arguments) of the calls that numpy refuses."""
    f = found(np, name)
    for i in range(len(arguments)):
        for word, bad in WRONG.items():
            if name == "diff" and word == "huge":  # numpy goes on for ever
                continue
            theirs, ours = ([argument(a, m) for a in arguments] for m in (np, pnp))
            theirs[i] = ours[i] = bad
            error = numpys_error(f, theirs)
            if error is not None:
                yield f"{i}: {word}", error, ours


def refusal(call):
    """The error of a call, which must be Plait's; None if there is none."""
    try:
        call()
    except PlaitError as e:
        return e
    return None


ALL = [(name, arguments) for name, arguments in calls() if hasattr(np, name.split(".")[0])]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("part", range(8))
def test_what_numpy_refuses_is_refused(part):
    failures = []
    for name, arguments in ALL[part::8]:
        f = found(pnp, name)
        options = {"inplace": False} if name in CHANGING else {}
        for wrong, numpys, ours in wrong_calls(name, arguments):
            what = f"{name}({' '.join(arguments)}), {wrong}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error = refusal(lambda f=f, ours=ours, options=options: f(*ours, **options))
            if error is None:
                if name not in TAKEN:
                    failures.append((what, "is taken", numpys))
            elif not of_its_class(error, numpys, wrong[3:]):
                failures.append((what, "of another class", error, numpys))
            elif not (error.fix and __file__ in error.where):
                failures.append((what, "not in three parts", error))
            elif wrong[3:] == "text" and name not in OTHERWISE:
                parameters = list(inspect.signature(f).parameters)
                asked = parameters[min(int(wrong[0]), len(parameters) - 1)]
                asked = f"`{asked}" if isinstance(error, NotAnArrayError) else rf"\b{asked}\b"
                if re.search(asked, f"{error.what} {error.fix}") is None:
                    failures.append((what, "the argument has no name", error))
    assert not failures


OTHERWISE = {"einsum", "einsum_path", "gradient", "meshgrid", "piecewise", "result_type", "select"}
"""Functions whose messages speak of text otherwise: of letters, or of more arrays than one."""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pnp.sum(M, "a"), "axis must be an integer, not 'a' (argument `axis`)"),
        (lambda: pnp.sum(M, (0, "a")), "axis must be an integer, not 'a' (argument `axis[1]`)"),
        (lambda: pnp.transpose(M, (0, "a")), "axes must be integers, not 'a' (argument `axes[1]`)"),
    ],
)
def test_the_words_about_axes(call, said):
    assert refusal(call).what == said


@pytest.mark.parametrize("part", range(2))
def test_what_is_refused_of_tracers(part):
    """Arrays are traced: the same errors, or that a value is not known."""
    for name, arguments in ALL[part::6]:
        f = found(pnp, name)
        options = {"inplace": False} if name in CHANGING else {}
        for _, _, ours in wrong_calls(name, arguments):
            arrays = [i for i, x in enumerate(ours) if isinstance(x, np.ndarray)]

            def call(*xs, f=f, ours=ours, arrays=arrays, options=options):
                xs = dict(zip(arrays, xs))
                return f(*[xs.get(i, x) for i, x in enumerate(ours)], **options)

            with contextlib.suppress(PlaitError):
                plait.eval_shape(call, *[ours[i] for i in arrays])


def test_every_function_is_called():
    """But for those whose arguments are not wrong in these ways."""
    missing = set()
    for module, prefix in ((pnp, ""), (pnp.linalg, "linalg."), (pnp.fft, "fft.")):
        for name in module.__all__:
            other = found(np, prefix[:-1]) if prefix else np
            f = getattr(module, name)
            if inspect.isfunction(f) and callable(getattr(other, name, None)):
                missing.add(prefix + name)
    missing -= {name for name, _ in calls()}
    assert missing == UNCALLED, missing ^ UNCALLED


UNCALLED = {
    "array_repr", "array_str", "from_dlpack", "fromfile", "frompyfunc", "fromstring",
    "get_printoptions", "isdtype", "isscalar", "iterable", "load", "printoptions", "save", "savez",
    "set_printoptions", "vectorize",
}  # fmt: skip


def test_errors_of_users_functions_are_theirs():
    def fails(*_):
        raise ValueError("mine")

    for call in (lambda: pnp.apply_along_axis(fails, 0, M), lambda: pnp.fromfunction(fails, (2, 2)),
                 lambda: pnp.piecewise(V3, NAMES["BB"], [fails, 1]),
                 lambda: pnp.vectorize(fails)(V)):  # fmt: skip
        with pytest.raises(ValueError, match="mine") as caught:
            call()
        assert not isinstance(caught.value, PlaitError)


# ---- strict modes ----------------------------------------------------------------------------

MODES = {
    "strict": lambda: plait.numpy_dtype_promotion("strict"),
    "raise": lambda: plait.numpy_rank_promotion("raise"),
    "infs": plait.debug.infs,
    "nans": plait.debug.nans,
}
MIXED = {"promote_types", "astype"}  # what is asked of them is to mix


def met_by_users(mode, arrays, result):
    """Whether the mode has something to say about what is given and what comes out."""
    if mode == "strict":
        return len({a.dtype for a in arrays}) > 1
    if mode == "raise":
        return len({a.ndim for a in arrays} - {0}) > 1
    out = [np.asarray(v) for v in plait.tree.leaves(result) if isinstance(v, plait.Array)]
    return not all(np.isfinite(v).all() for v in (*arrays, *out) if v.dtype.kind in "fc")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("mode", MODES)
def test_strict_modes_are_about_users_operands(mode):
    """A right call on arrays of one dtype, of one number of axes, with finite results is right in
    every mode: what happens inside of a function is no business of its caller."""
    failures, asked = [], 0
    for name, arguments in ALL:
        args = [argument(a, pnp) for a in arguments]
        options = {"inplace": False} if name in CHANGING else {}
        run = lambda f=found(pnp, name), args=args, options=options: f(*args, **options)  # noqa: E731
        arrays = [a for a in plait.tree.leaves(args) if isinstance(a, np.ndarray)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = run()
            except PlaitError:
                continue  # numpy's examples are not all ours
            if name in MIXED or met_by_users(mode, arrays, want):
                continue
            asked += 1
            try:
                with MODES[mode]():
                    run()
            except PlaitError as e:
                failures.append((name, arguments, e))
    assert not failures and asked > 250


WEIGHED = {
    "cov": lambda: pnp.cov(M, fweights=np.arange(4), aweights=np.ones(4)),
    "trapezoid": lambda: pnp.trapezoid(M, dx=np.ones(3, F4)),
    "quantile": lambda: pnp.quantile(
        np.ones((3, 5, 4)), np.array([0.5, 0.2]), axis=1, weights=np.ones(5), method="inverted_cdf"
    ),
    "average": lambda: pnp.average(M, 1, np.ones(4, F4)),
    "polyfit": lambda: pnp.polyfit(np.arange(4.0), np.ones((4, 2)), 1, w=np.ones(4), cov=True),
    "logsumexp": lambda: plait.nn.logsumexp(np.array([-1000, -2]), b=np.array([1, 0])),
    "round": lambda: pnp.round(M, -1),
    "max": lambda: pnp.max(M, where=M > 0, initial=0.0),
    "attention": lambda: plait.nn.dot_product_attention(
        pnp.zeros((5, 6, 8)), pnp.zeros((7, 3, 8)), pnp.zeros((7, 3, 8)), mask=pnp.arange(7) <= 3
    ),
    "softmax": lambda: plait.nn.softmax(M, where=M > 0),
}


@pytest.mark.parametrize("name", WEIGHED)
def test_strict_modes_where_operands_differ_by_their_roles(name):
    """Weights, masks and steps have axes and dtypes of their own."""
    want = WEIGHED[name]()
    modes = ["raise", "infs", "nans"] if name in ("cov", "quantile") else list(MODES)
    for mode in modes:
        with MODES[mode]():
            got = WEIGHED[name]()
        for g, w in zip(plait.tree.leaves(got), plait.tree.leaves(want)):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-5)


def test_infinities_and_nans_that_users_make_are_found():
    cases = {
        "infs": [lambda: 1 / pnp.zeros(2), lambda: pnp.log2(pnp.zeros(2)), lambda: pnp.log2(0.0),
                 lambda: plait.jit(lambda x: pnp.log2(x) + 1)(0.0)],
        "nans": [lambda: pnp.log2(-pnp.ones(3)), lambda: pnp.var(pnp.zeros(0))],
    }  # fmt: skip
    for mode, calls_ in cases.items():
        for call in calls_:
            with pytest.raises(plait.errors.NanError) as e, MODES[mode]():
                call()
            assert __file__ in e.value.where
    with plait.debug.nans():
        assert np.isnan(pnp.hypot(np.nan, 1.0))


@pytest.mark.parametrize(
    "wrong, written",
    [
        (lambda: pnp.percentile(V, [10, 120]), "120, which is not between 0 and 100"),
        (lambda: pnp.nanpercentile(V, -3), "-3, which is not between 0 and 100"),
        (lambda: pnp.quantile(V, np.array([0.5, 1.5])), "1.5, which is not between 0 and 1"),
    ],
)
def test_fractions_are_told_as_they_were_written(wrong, written):
    with pytest.raises(PlaitError, match=written):
        wrong()
