#include "gzip.h"
#include <string.h>

// Eight bytes at a time.
uint32_t crc32Of(uint32_t crc, const uint8_t *p, size_t size) {
  static uint32_t table[8][256];
  if (!table[0][1]) {
    for (uint32_t i = 0; i < 256; i++) {
      table[0][i] = i;
      for (int bit = 0; bit < 8; bit++) table[0][i] = table[0][i] >> 1 ^ (table[0][i] & 1 ? 0xedb88320 : 0);
    }
    for (int t = 1; t < 8; t++)
      for (int i = 0; i < 256; i++) table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 255];
  }
  for (crc = ~crc; size >= 8; p += 8, size -= 8) {
    uint32_t low, high;
    memcpy(&low, p, 4);
    memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
          table[3][high & 255] ^ table[2][high >> 8 & 255] ^ table[1][high >> 16 & 255] ^ table[0][high >> 24];
  }
  for (; size > 0; p++, size--) crc = crc >> 8 ^ table[0][(crc ^ *p) & 255];
  return ~crc;
}
