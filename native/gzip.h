// What is in gzip's format and not compressed.
#pragma once
#include <stddef.h>
#include <stdint.h>

// CRC-32 of gzip, going on from one.
uint32_t crc32Of(uint32_t crc, const uint8_t *bytes, size_t size);
