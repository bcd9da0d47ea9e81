/* xml.h - reads XML documents of stores with expat; private to archive/.
 *
 *     static bool on_end(void *ctx, unsigned depth, const char *name, struct rd_slice text) {...}
 *     if (!archive_xml(xml, "ListBucketResult", on_end, &ctx, &err))
 *         ... it is cut, another document, or not XML at all ...
 *
 * A document comes from a server that may be hostile: a document type, too many levels and long
 * texts are errors, and no entity is expanded except the five of XML.
 */
#ifndef ARCHIVE_XML_H
#define ARCHIVE_XML_H

#include "base/err.h"
#include "base/slice.h"

enum { ARCHIVE_S3_DEPTH_MAX = 16, ARCHIVE_S3_TEXT_MAX = 8192 };

/* The end of an element: its level (0: the root), its name without a namespace, and the characters
 * after its last inner element. False ends the reading; the caller knows why. */
typedef bool archive_s3_end_fn(void *ctx, unsigned depth, const char *name, struct rd_slice text);

/* Reads a whole document with this root element. RD_ERR_PROTOCOL: it is not one, or it was cut. */
bool archive_xml(struct rd_slice xml, const char *root, archive_s3_end_fn *on_end, void *ctx,
                 struct rd_err *err);

/* The same; only elements of this namespace have a name, the others "". */
bool archive_xml_of(struct rd_slice xml, const char *space, const char *root,
                    archive_s3_end_fn *on_end, void *ctx, struct rd_err *err);

#endif
