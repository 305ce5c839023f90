"""Models of other programs for host/tests/cli/import.rs, with rows and what those programs predict for them.

    python3 -m venv V && V/bin/pip install torch onnxscript onnx safetensors && V/bin/python make.py torch
    python3 -m venv W && W/bin/pip install tensorflow-cpu tf2onnx             && W/bin/python make.py keras
    python3 -m venv U && U/bin/pip install scikit-learn skl2onnx              && U/bin/python make.py sklearn

Writes NAME.onnx (and one .safetensors), NAME.X.npy and NAME.y.npy: the outputs,
probabilities where the model ends in softmax or sigmoid.
"""

import os
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
ROWS = 8


def save(name, x, y):
    x = np.asarray(x, np.float32).reshape(len(x), -1)
    np.save(f"{name}.X.npy", x)
    np.save(f"{name}.y.npy", np.asarray(y, np.float32).reshape(len(x), -1))


def rows(*shape):
    return np.random.RandomState(1).randn(ROWS, *shape).astype(np.float32)


def torch_models():
    import torch
    from safetensors.torch import save_file
    from torch import nn

    torch.manual_seed(0)
    three = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    flat = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Dropout(0.2), nn.Linear(5, 1), nn.Sigmoid())
    plain = nn.Sequential(nn.Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 3, bias=False), nn.Softmax(dim=-1))
    for name, model, x in [("three", three, rows(6)), ("flat", flat, rows(3, 4)), ("plain", plain, rows(6))]:
        model.eval()
        x = torch.tensor(x)
        y = model(x).detach().numpy()
        old = {"input_names": ["input"], "dynamic_axes": {"input": {0: "N"}}}
        for way, settings in [("dynamo", {"dynamo": True, "external_data": False}), ("script", {"dynamo": False, **old})]:
            torch.onnx.export(model, (x,), f"torch_{name}_{way}.onnx", verbose=False, **settings)
            save(f"torch_{name}_{way}", x, y)
    save_file(three.state_dict(), "torch_three.safetensors")


def keras_models():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    keras = tf.keras
    keras.utils.set_random_seed(0)

    def dense(*args, **named):
        return keras.layers.Dense(*args, bias_initializer="random_normal", **named)

    models = {
        "classes": [keras.Input((6,)), dense(5, "relu"), keras.layers.Dropout(0.2), dense(3, "softmax")],
        "binary": [keras.Input((3, 4)), keras.layers.Flatten(), dense(5, "relu"), dense(1, "sigmoid")],
        "numbers": [keras.Input((6,)), dense(5, "relu"), dense(4, "relu"), dense(2)],
    }
    for name, layers in models.items():
        model = keras.Sequential(layers)
        x = rows(*model.input_shape[1:])
        save(f"keras_{name}", x, model(x).numpy())
        model.export(f"keras_{name}.onnx", format="onnx", verbose=False)


def sklearn_models():
    from skl2onnx import to_onnx
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    x = np.random.RandomState(0).randn(200, 6).astype(np.float32)
    three = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    settings = {"max_iter": 30, "random_state": 0}
    models = {
        "classes": (MLPClassifier((5,), **settings), three),
        "binary": (MLPClassifier((5,), **settings), three > 0),
        "numbers": (MLPRegressor(hidden_layer_sizes=(5, 4), **settings), x[:, 0] * 2),
        "scaled": (make_pipeline(StandardScaler(), MLPClassifier((5,), **settings)), three),
        "ranged": (make_pipeline(MinMaxScaler(), MLPRegressor(hidden_layer_sizes=(5,), **settings)), x[:, 0]),
    }
    for name, (model, y) in models.items():
        model.fit(x, y.astype(int) if name == "binary" else y)
        test = rows(6)
        predicted = model.predict_proba(test) if hasattr(model, "predict_proba") else model.predict(test)
        if name == "binary":
            predicted = predicted[:, 1]
        save(f"sklearn_{name}", test, predicted)
        with open(f"sklearn_{name}.onnx", "wb") as file:
            file.write(to_onnx(model, x[:1]).SerializeToString())
        if name == "numbers":
            arrays = {f"coefs_{i}": a for i, a in enumerate(model.coefs_)}
            arrays.update({f"intercepts_{i}": a for i, a in enumerate(model.intercepts_)})
            np.savez("sklearn_numbers.npz", **arrays)


if __name__ == "__main__":
    {"torch": torch_models, "keras": keras_models, "sklearn": sklearn_models}[sys.argv[1]]()
