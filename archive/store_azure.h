/* store_azure.h - a repository in a container of Azure Blob Storage.
 *
 *     const struct archive_azure_opts opts = {.endpoint = "https://redis.blob.core.windows.net",
 *                                             .account = "redis", .container = "backups",
 *                                             .key = …, .upload = random};
 *     if (!archive_store_open_azure(&store, &opts, &err))
 *         ...
 *
 * Objects are block blobs. Requests are authorized by Shared Key, or by a shared access signature
 * (SAS) in their query. Objects larger than a part are uploaded in blocks. The blocks of an upload
 * that was interrupted are not visible, and the service removes them after a week. A request that
 * fails temporarily (the network, 429, 5xx) is repeated, with delays that double. Memory: one part
 * and one range.
 *
 * Strings are copied. Errors never contain a key, a signature or a SAS.
 */
#ifndef ARCHIVE_STORE_AZURE_H
#define ARCHIVE_STORE_AZURE_H

#include "archive/store.h"

#include <stdatomic.h>

enum { ARCHIVE_AZURE_PART = 8 * 1024 * 1024 };

struct archive_azure_opts {
    const char *endpoint; /* https://HOST[:PORT][/PATH] */
    const char *account, *container;
    const char *prefix;           /* before all names, without slashes at its ends; NULL: none */
    const char *key;              /* of the account, in base64; NULL: sas is used */
    const char *sas;              /* the parameters of a SAS: "sv=…&sig=…" */
    const char *ca_file;          /* trusted authorities; NULL: the system's list */
    size_t part_size;             /* 0: ARCHIVE_AZURE_PART */
    uint64_t upload;              /* random: blocks of two uploads have different names */
    int64_t (*now_ms)(void);      /* Unix time: requests are of a moment */
    unsigned tries;               /* of a request; 0: 6 */
    void (*wait_ms)(uint64_t ms); /* between them */
    uint64_t rate;                /* bytes a second in each direction; 0: no limit */
    const atomic_bool *cancel;    /* true: requests end; NULL: none */
};

bool archive_store_open_azure(struct archive_store **ret, const struct archive_azure_opts *opts,
                              struct rd_err *err);

#endif
