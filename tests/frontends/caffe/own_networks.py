"""Networks for Caffe itself to save and run: classifiers, a detector's heads, a segmenter, and layers one after another."""

from __future__ import annotations

from tests.frontends.caffe.networks import NETWORKS as COMMON
from tests.frontends.caffe.networks import Net


def lenet() -> Net:
    net = Net(2, 1, 28, 28)
    net.add("Power", scale=0.5, shift=0.1)
    net.add("Convolution", num_output=6, kernel_size=5)
    net.add("Pooling", pool="MAX", kernel_size=2, stride=2)
    net.add("Convolution", num_output=8, kernel_h=5, kernel_w=3, stride=1)
    net.add("Pooling", pool="AVE", kernel_size=3, stride=2, pad=1)
    net.add("InnerProduct", num_output=20)
    net.add("Sigmoid")
    net.add("InnerProduct", num_output=10, bias_term=False)
    net.add("Softmax")
    return net


def googlenet() -> Net:
    net = Net(1, 3, 40, 36)
    net.conv(8, 7, 3, stride=2)
    net.add("Pooling", pool="MAX", kernel_size=3, stride=2)
    net.add("LRN", local_size=5, alpha=0.1, beta=0.75)
    net.conv(8, 1, 0)
    net.conv(12)
    net.add("LRN", local_size=3, alpha=0.2, beta=0.5, k=2.0)
    for n in (4, 6):
        given, parts = net.add("Pooling", pool="MAX", kernel_size=3, stride=2), []
        for k in (1, 3, 5):
            net.last = given
            if k > 1:
                net.conv(n, 1, 0)
            parts.append(net.conv(2 * n, k, k // 2))
        net.add("Pooling", given, pool="MAX", kernel_size=3, stride=1, pad=1)
        parts.append(net.conv(n, 1, 0))
        net.add("Concat", " ".join(parts), axis=1)
    net.add("Pooling", pool="AVE", global_pooling=True)
    net.add("Dropout", in_place=True, dropout_ratio=0.4)
    net.add("InnerProduct", num_output=10)
    return net


def detector() -> Net:
    net = Net(1, 3, 32, 32)
    scores, boxes = list[str](), list[str]()
    for n in (8, 12, 16):
        net.add("Convolution", num_output=n, kernel_size=3, stride=2, pad=1, bias_term=False)
        net.add("BatchNorm", in_place=True)
        net.add("Scale", in_place=True, bias_term=True)
        given = net.add("PReLU", in_place=True)
        net.add("Convolution", num_output=n, kernel_size=3, pad=1, group=n, bias_term=False)
        last = net.add("ELU", alpha=0.7)
        for numbers, of in ((3, scores), (4, boxes)):
            net.add("Convolution", last, num_output=2 * numbers, kernel_size=1)
            net.add("Permute", order=[0, 2, 3, 1])
            of.append(net.add("Flatten", axis=1))
        net.last = given
    net.add("Concat", " ".join(scores), axis=1)
    net.add("Reshape", shape={"dim": [0, -1, 3]})
    net.add("Softmax", axis=2)
    net.add("Flatten")
    net.add("Concat", " ".join(boxes), axis=1)
    return net


def segmenter() -> Net:
    net = Net(1, 3, 22, 30)
    a = net.conv(6)
    net.add("Pooling", pool="MAX", kernel_size=2, stride=2)
    b = net.conv(8, 3, 2, dilation=2)
    net.add("Pooling", pool="MAX", kernel_size=2, stride=2)
    net.conv(10)
    net.add("Deconvolution", num_output=8, kernel_size=4, stride=2, pad=1, bias_term=False)
    cropped = net.add("Crop", f"{net.last} {b}", axis=2, offset=[0, 0])
    net.add("Eltwise", f"{cropped} {b}", operation="SUM", coeff=[1.0, -0.5])
    net.add("Deconvolution", num_output=6, kernel_size=4, stride=2, group=2)
    cropped = net.add("Crop", f"{net.last} {a}", axis=2, offset=[1, 2])
    net.add("Eltwise", f"{cropped} {a}", operation="MAX")
    net.conv(4, 1, 0)
    net.add("Softmax")
    return net


def functions() -> Net:
    net = Net(2, 6, 5, 7)
    net.add("MVN", normalize_variance=True, across_channels=True, eps=0.001)
    net.add("Slice", tops="s0 s1 s2", axis=1, slice_point=[1, 3])
    net.add("Tile", "s0", tops="tiled", axis=1, tiles=2)
    net.add("Bias", tops="biased", axis=1)
    net.add("Eltwise", "biased s1", tops="prod", operation="PROD")
    net.add("TanH", "prod", tops="t")
    net.add("AbsVal", "prod", tops="a")
    net.add("Power", "a", tops="pow", power=1.5, scale=2.0, shift=0.5)
    net.add("Log", "pow", tops="log", base=2.0, shift=1.0)
    net.add("Exp", "t", tops="exp", base=3.0, scale=0.5, shift=0.25)
    net.add("BNLL", "s2", tops="bnll")
    net.add("Concat", "log exp bnll", tops="all")
    net.add("Reduction", "all", tops="sums", axis=2, operation="SUMSQ", coeff=0.1)
    net.add("Reduction", "all", tops="means", axis=1, operation="MEAN", coeff=30.0)
    net.add("LRN", "all", tops="lrn", local_size=3, alpha=0.5, norm_region="WITHIN_CHANNEL")
    return net


def words() -> Net:
    """An input of whole numbers, which `caffe_process` draws below the count of rows."""
    net = Net(2, 9)
    net.add("Embed", input_dim=20, num_output=6)
    net.add("Reshape", shape={"dim": [0, 1, 9, 6]})
    net.add("Convolution", num_output=8, kernel_h=3, kernel_w=6)
    net.add("Swish", beta=1.5)
    net.add("Pooling", pool="MAX", global_pooling=True)
    net.add("InnerProduct", num_output=10)
    net.add("Threshold", tops="large", threshold=0.5)
    net.add("Softmax", net.layers[-2].tops[0])
    return net


def captions() -> Net:
    """Recurrent layers: sequences of words and of images, with what is the same at all steps, and states as bottoms and tops."""
    net = Net(3, 2, 5)
    net.more("cont", 3, 2)
    net.more("image", 2, 3, 2)
    net.more("h", 1, 2, 4)
    net.more("c", 1, 2, 4)
    net.add("LSTM", "data cont", tops="seen", num_output=6)
    net.add("LSTM", "seen cont image", tops="named", num_output=3)
    net.add("LSTM", "named cont image h c", tops="out out_h out_c", num_output=4, expose_hidden=True)
    net.add("RNN", "seen cont", tops="simple", num_output=5)
    net.add("RNN", "simple cont image h", tops="end end_h", num_output=4, expose_hidden=True)
    return net


def long_sequence() -> Net:
    """More steps than are written out, all sequences of which begin with the run; and an activation of gates by itself."""
    net = Net(40, 2, 3)
    net.add("ContinuationIndicator", tops="cont", time_step=40, batch_size=2)
    net.add("Reverse", "data", tops="backwards", axis=0)
    net.add("LSTM", "data cont", tops="there", num_output=4)
    net.add("RNN", "backwards cont", tops="back", num_output=4)
    net.add("Concat", "there back", axis=2)
    net.more("memory", 1, 2, 4)
    net.more("gates", 1, 2, 16)
    net.more("goes_on", 1, 2)
    net.add("LSTMUnit", "memory gates goes_on", tops="next given")
    return net


def choices() -> Net:
    net = Net(3, 4, 6, 5)
    net.more("rows", 4)
    net.more("flags", 3)
    net.add("ArgMax", "data", tops="place")
    net.add("ArgMax", "data", tops="both", top_k=3, out_max_val=True)
    net.add("ArgMax", "data", tops="classes", axis=1)
    net.add("ArgMax", "data", tops="values", axis=-2, top_k=2, out_max_val=True)
    net.add("Flatten", "data", tops="flat")
    net.add("ArgMax", "flat", tops="ranked", top_k=5)
    net.add("BatchReindex", "data rows", tops="reindexed")
    net.add("Filter", "data flat flags", tops="kept flat_kept")
    net.add("Parameter", "", tops="learnt", shape={"dim": [2, 3]})
    net.add(
        "DummyData",
        "",
        tops="ones fives",
        shape={"dim": [3, 4]},
        data_filler=[{"type": "constant", "value": 1}, {"type": "constant", "value": 5}],
    )
    net.add("Pooling", "data", tops="pooled places", pool="MAX", kernel_size=3, stride=2, pad=1)
    return net


def windows() -> Net:
    net = Net(2, 3, 9, 11)
    net.add("Im2col", "data", tops="columns", kernel_size=3, stride=2, pad=1)
    net.add("Im2col", "data", tops="apart", kernel_h=2, kernel_w=3, dilation=2, pad=0)
    for pool in ("MAX", "AVE"):
        net.add("SPP", "data", tops=f"pyramid{pool}", pyramid_height=3, pool=pool)
        net.add("SPP", "data", tops=f"flat{pool}", pyramid_height=1, pool=pool)
    net.add("MVN", "data", tops="mvn", across_channels=False)
    return net


def volumes() -> Net:
    net = Net(2, 4, 5, 6, 7)
    net.add("Convolution", num_output=6, kernel_size=[3, 2, 3], stride=[1, 2, 2], pad=[1, 0, 1], group=2)
    net.add("ReLU", in_place=True)
    net.add("Deconvolution", num_output=4, kernel_size=2, stride=2)
    net.add("Reshape", shape={"dim": [2, 4, 10, -1]}, tops="rows")
    net.add("Convolution", "rows", num_output=3, kernel_size=3, axis=2)
    net.add("Reshape", "rows", shape={"dim": [2, 4, -1]}, tops="row")
    net.add("Convolution", "row row", tops="x y", num_output=3, kernel_size=5, stride=4, dilation=2)
    return net


NETWORKS = {
    **{name: COMMON[name] for name in ("alexnet", "squeezenet", "resnet")},
    **{
        f.__name__: f().layers
        for f in (
            lenet,
            googlenet,
            detector,
            segmenter,
            functions,
            words,
            captions,
            long_sequence,
            choices,
            windows,
            volumes,
        )
    },
}
