/* crc16.h - CRC-16/XMODEM and the hash slot of a key.
 *
 * Polynomial 0x1021, not reflected, initial value 0, no final xor. The check value (the CRC of
 * "123456789") is 0x31c3. Redis Cluster maps a key to one of 16384 slots with it.
 */
#ifndef BASE_CRC16_H
#define BASE_CRC16_H

#include "base/api.h"
#include "base/slice.h"

enum { RD_HASH_SLOTS = 16384 };

/* Continues crc (0 to begin) over len bytes. */
uint16_t rd_crc16(uint16_t crc, const void *ptr, size_t len);

/* The cluster slot of a key, 0 to RD_HASH_SLOTS - 1. If the key has a hash tag, only the tag is
 * hashed: the bytes between the first '{' and the first '}' after it. An empty tag does not count.
 */
unsigned rd_hash_slot(struct rd_slice key);

#endif
