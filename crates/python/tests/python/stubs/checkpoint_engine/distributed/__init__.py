from .base import (
    Distributed,
    all_gather_object,
    all_reduce,
    barrier,
    broadcast,
    destroy_process_group,
    init_process_group,
    is_initialized,
    new_group,
)
