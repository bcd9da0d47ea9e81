/* digest.h - a digest of a data set in 20 bytes: DEBUG DIGEST and DEBUG DIGEST-VALUE.
 *
 *     uint8_t sum[ENGINE_DIGEST];
 *     engine_digest(e, sum);
 *
 * Two data sets with the same content have the same digest, whatever their encodings, the order of
 * members in their tables and the expiry times of keys (whether a key has an expiry does count). It
 * is the digest of Redis 7.0.15 and, like it, does not cover groups of streams. Expired keys that
 * still exist count. Module values cannot be decoded here and count by their serialized bytes; a
 * server asks the module instead.
 *
 * The sums into which values mix their elements, where o is exclusive or:
 *
 *     xor(sum, bytes)    sum = sum o SHA-1(bytes)              the order does not matter
 *     mix(sum, bytes)    sum = SHA-1(sum o SHA-1(bytes))       the order matters
 *
 * For a pair in a hash or sorted set, mix both into zeros and xor those 20 bytes into the sum.
 */
#ifndef ENGINE_DIGEST_H
#define ENGINE_DIGEST_H

#include "engine/db.h"
#include "engine/engine.h"

enum { ENGINE_DIGEST = 20 };

void engine_digest_xor(uint8_t sum[ENGINE_DIGEST], struct rd_slice bytes);
void engine_digest_mix(uint8_t sum[ENGINE_DIGEST], struct rd_slice bytes);

/* A key with its value and expiry. */
void engine_digest_entry(const struct engine_entry *entry, uint8_t ret[ENGINE_DIGEST]);

/* All databases. Takes about half a microsecond per element of a collection. */
void engine_digest(struct engine *e, uint8_t ret[ENGINE_DIGEST]);

/* DEBUG DIGEST-VALUE. False, and ret is all zeros: the key does not exist. */
bool engine_digest_key(const struct engine_db *db, struct rd_slice key, uint8_t ret[ENGINE_DIGEST]);

#endif
