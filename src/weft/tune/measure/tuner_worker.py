"""The worker process of the tuner: started with settings, of which a failed start is told as the tuner's."""

from __future__ import annotations

from weft.support.errors import DeviceError
from weft.support.worker_process import WorkerDied, WorkerHung, WorkerProcess, told
from weft.tune.measure.worker_settings import WorkerSettings

MODULE = "weft.tune.worker"
"""The module that a worker runs."""


class TunerWorker(WorkerProcess):
    """A process that carries out the tuner's jobs."""

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__(MODULE, settings.to_text())

    def await_start(self) -> None:
        """Waits until the worker has imported its modules; raises `DeviceError` where it does not start."""
        try:
            super().await_start()
        except WorkerHung as error:
            raise DeviceError(
                f"a worker of the tuner does not start: {error}", hint="wait until the machine has less to do"
            ) from None
        except WorkerDied as death:
            status, text = death.args
            raise DeviceError(
                f"a worker of the tuner does not start: {told(status)}\n{text}",
                hint="`python -m weft.tune.worker` shows why",
            ) from None
