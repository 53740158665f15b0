// gzip's format without compression.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Continues gzip's CRC-32 from `crc`.
uint32_t crc32Of(uint32_t crc, const uint8_t *bytes, size_t size);
