/* keys.h - the keys of a target, with which sets are sealed and opened.
 */
#ifndef BACKUP_KEYS_H
#define BACKUP_KEYS_H

#include "backup/config.h"
#include "base/buf.h"
#include "base/seal.h"

enum { BACKUP_RING = 8 };

struct backup_keys {
    struct rd_seal_key keys[BACKUP_RING]; /* the first one seals */
    size_t n_keys;
    struct rd_buf passphrase;
    struct rd_seal_ring ring; /* of the above */
};

/* What the target says about keys; none at all is fine. The ring requires that everything is sealed
 * if there is a key, unless --allow-unsealed is given. */
bool backup_keys_open(struct backup_keys *ret, const struct backup_target *target,
                      struct rd_err *err);
/* For tools that need no key: only a key file, if it can be read. It runs no command. */
void backup_keys_look(struct backup_keys *ret, const struct backup_target *target);
void backup_keys_done(struct backup_keys *keys);
/* Whether the target has a key or a passphrase. */
bool backup_keys_given(const struct backup_keys *keys);

/* The key to seal with: the first one, or one made of the passphrase with a new salt, which is kept
 * for the rest of the run. NULL in *ret: nothing is sealed. */
bool backup_keys_seal(struct backup_keys *keys, const struct rd_seal_key **ret, struct rd_err *err);

/* Reads keys from text: 32 bytes, or lines of 64 hexadecimal digits or 44 characters of base64. */
bool backup_keys_parse(struct backup_keys *keys, struct rd_slice text, struct rd_err *err);

#endif
