/* priv.h - what the parts of the vault share; private to tools/vault/. */
#ifndef TOOLS_VAULT_PRIV_H
#define TOOLS_VAULT_PRIV_H

#include "archive/store_s3.h"
#include "tools/vault/vault.h"

/* instance.c: sets opts->keys to what asks the platform of this host. The store that is opened with
 * opts, also if that fails, releases it. */
bool vault_instance_keys(struct archive_s3_opts *opts, struct rd_err *err);

/* places.c: the same store once more, for another thread. Requests are tried once, and end when
 * *cancel becomes true. */
bool vault_open_again(struct archive_store **ret, const struct vault_target *target,
                      const char *where, const atomic_bool *cancel, struct rd_err *err);

#endif
