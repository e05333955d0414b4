"""The order of calls of `CheckpointEngineManager` of verl 0.9.1, which needs Ray."""

from verl.checkpoint_engine.base import CheckpointEngineRegistry


class Manager:
    """Drives updates by `call(worker, method, keywords)`, for a worker of a list, which returns a function that waits for
    the result. Trainers are the first workers."""

    def __init__(self, backend, call):
        self.backend_cls = CheckpointEngineRegistry.get(backend)
        self.call = call

    def _each(self, method, keywords):
        results, failures = [], []
        for wait in [self.call(worker, method, found) for worker, found in enumerate(keywords)]:
            try:
                results.append(wait())
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return results

    def update_weights(self, trainers, rollouts, global_steps):
        workers = trainers + rollouts
        metadata = self._each("prepare", [{}] * workers)
        of_trainers, of_rollouts = self.backend_cls.build_topology(trainers, rollouts, metadata)
        assert all(len(values) == trainers for values in of_trainers.values()), of_trainers
        assert all(len(values) == rollouts for values in of_rollouts.values()), of_rollouts
        keywords = [{name: values[place] for name, values in of_trainers.items()} for place in range(trainers)]
        keywords += [{name: values[place] for name, values in of_rollouts.items()} for place in range(rollouts)]
        self._each("init_process_group", keywords)
        # At a trainer `send_weights` of its engine, at a rollout worker `receive_weights`.
        self._each("update_weights", [{"global_steps": global_steps}] * workers)
        self._each("finalize", [{}] * workers)
