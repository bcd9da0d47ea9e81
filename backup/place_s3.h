/* place_s3.h - opens a repository in S3 or Google Cloud Storage; private to backup/.
 */
#ifndef BACKUP_PLACE_S3_H
#define BACKUP_PLACE_S3_H

#include "backup/places.h"

/* "s3://BUCKET[/PREFIX]" or "gs://BUCKET[/PREFIX]", with the settings of the target. rate: bytes a
 * second, 0 for no limit. cancel: see backup_open_again(). */
bool backup_open_s3(struct archive_store **ret, const struct backup_target *target,
                    const char *where, uint64_t rate, const atomic_bool *cancel,
                    struct rd_err *err);

#endif
