/* instance.h - keys of S3 from the platform on which this program runs.
 */
#ifndef BACKUP_INSTANCE_H
#define BACKUP_INSTANCE_H

#include "archive/store_s3.h"

/* Sets opts->keys to what asks the platform of this host. The store that is opened with opts, also
 * if that fails, releases it. */
bool backup_instance_keys(struct archive_s3_opts *opts, struct rd_err *err);

#endif
