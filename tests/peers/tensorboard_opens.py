#!/usr/bin/env python3
"""What TensorBoard itself sees of a run trained with metrics.tensorboard = true.

    tests/peers/tensorboard_opens.py RUN

Reads RUN/tensorboard through TensorBoard's two loaders: the multiplexer behind its pages, and the
data server that it starts where one is installed. Prints each tag with its steps and last value,
and fails unless every tag's steps rise and both loaders and metrics.jsonl agree on them.
"""

import json
import pathlib
import sys
import time

from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.data import provider as data
from tensorboard.data import server_ingester
from tensorboard.util import grpc_util


def read_scalars(provider, experiment):
    """{tag: [(step, value)]} of the one run that the provider knows."""
    tags = provider.list_scalars(RequestContext(), experiment_id=experiment, plugin_name="scalars")
    if len(tags) != 1:
        raise LookupError(f"expected one run, saw {sorted(tags)}")
    series = provider.read_scalars(
        RequestContext(),
        experiment_id=experiment,
        plugin_name="scalars",
        downsample=10**6,
        run_tag_filter=data.RunTagFilter(runs=list(tags)),
    )
    (run,) = series.values()
    return {tag: [(p.step, p.value) for p in points] for tag, points in run.items()}


def by_multiplexer(folder):
    multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0})
    multiplexer.AddRunsFromDirectory(folder).Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
    return read_scalars(provider, "")


def by_data_server(folder):
    """None where the data server is not installed."""
    try:
        binary = server_ingester.get_server_binary()
    except server_ingester.NoDataServerError as missing:
        print(f"data server: {missing}")
        return None
    ingester = server_ingester.SubprocessServerDataIngester(
        server_binary=binary,
        logdir=folder,
        reload_interval=1,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL,
        samples_per_plugin={"scalars": 0},
    )
    ingester.start()
    return when_loaded(lambda: read_scalars(ingester.data_provider, ""))


def when_loaded(read):
    """What read() gives once two readings a second apart are the same; the server loads on its own."""
    before = None
    for _ in range(30):
        try:
            now = read()
        except LookupError:
            now = None
        if now is not None and now == before:
            return now
        before = now
        time.sleep(1)
    raise SystemExit("the data server did not come to rest")


def main():
    run = pathlib.Path(sys.argv[1])
    folder = str(run / "tensorboard")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines]
    for name in sorted(path.name for path in pathlib.Path(folder).iterdir()):
        print("file", name)
    for loader in (by_multiplexer, by_data_server):
        seen = loader(folder)
        if seen is None:
            continue
        for tag, points in sorted(seen.items()):
            told = [step for step, _ in points]
            print(f"{loader.__name__}: {tag}: steps {told[0]}-{told[-1]}, "
                  f"{len(told)} points, last {points[-1][1]:.6g}")
            if told != sorted(set(told)):
                raise SystemExit(f"{tag} goes back and forth: {told}")
            if tag != "validation_metrics/loss" and told != steps:
                raise SystemExit(f"{tag}: steps {told}, metrics.jsonl has {steps}")
        losses = [value for _, value in seen["loss_metrics/global_avg_loss"]]
        worst = max(abs(a - line["loss"]) / line["loss"] for a, line in zip(losses, lines))
        print(f"{loader.__name__}: losses differ from metrics.jsonl by {worst:.1e} at most")
        if worst > 1e-6:
            raise SystemExit("losses differ")
    print("ok")


if __name__ == "__main__":
    main()
