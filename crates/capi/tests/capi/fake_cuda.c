/* Stands for the CUDA driver: one address is memory of a device, and another one is managed memory. */
#include <stdbool.h>

unsigned char cuda_device_memory[4096], cuda_managed_memory[4096];

int cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
    bool is_device = address == (unsigned long long)cuda_device_memory;
    bool is_managed = address == (unsigned long long)cuda_managed_memory;

    if (!is_device && !is_managed)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    if (attribute == 2)
        *(unsigned *)data = 2; /* CU_MEMORYTYPE_DEVICE */
    else if (attribute == 8)
        *(bool *)data = is_managed;
    else
        return 1;
    return 0;
}
