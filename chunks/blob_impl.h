/* blob_impl.h - private to chunks/: the bytes of a blob in a pack, and back.
 *
 * A blob is a byte that names the codec and the plain bytes, or their zstd frame; in a sealed set
 * these are sealed under the name "TARGET/chunks/NAME". Its name is the keyed hash of its kind and
 * its plain bytes, so what a reader gets is proved by the recipe that names it.
 */
#ifndef CHUNKS_BLOB_IMPL_H
#define CHUNKS_BLOB_IMPL_H

#include "base/seal.h"
#include "base/zstd.h"
#include "chunks/recipe_impl.h"

enum { CHUNKS_KEYS = 4, CHUNKS_NAME_HEX = 2 * CHUNKS_NAME + 1 };

struct chunks_codec {
    const char *target;            /* borrowed */
    const struct rd_seal_key *key; /* to seal with; NULL: not sealed */
    const struct rd_seal_ring *ring;
    bool (*random)(void *ret, size_t size, struct rd_err *err);
    bool sealed; /* what a reader expects */
    bool whole;  /* a reader compares the digest of all it reads: if the blobs are sealed, their
                   names are not compared with their bytes, too */
    struct rd_seal_key keys[CHUNKS_KEYS]; /* that were found, since a passphrase is slow */
    size_t n_keys;
    struct rd_zstd_blocks *zstd;
    struct rd_buf work;
};

bool chunks_codec_init(struct chunks_codec *codec, int level, struct rd_err *err);
void chunks_codec_done(struct chunks_codec *codec);

bool chunks_blob_name(const uint8_t key[CHUNKS_KEY], enum chunks_kind kind, struct rd_slice plain,
                      uint8_t ret[CHUNKS_NAME], struct rd_err *err);
char *chunks_blob_hex(const uint8_t name[CHUNKS_NAME], char ret[CHUNKS_NAME_HEX]);

/* Appends the stored bytes to *ret. */
bool chunks_blob_encode(struct chunks_codec *codec, const uint8_t name[CHUNKS_NAME],
                        struct rd_slice plain, struct rd_buf *ret, struct rd_err *err);

/* Appends the plain bytes to *ret, after it has proved that they are those of the name.
 * RD_ERR_CHECKSUM: they are not. */
bool chunks_blob_decode(struct chunks_codec *codec, const uint8_t key[CHUNKS_KEY],
                        const struct chunks_blob *blob, struct rd_slice stored, struct rd_buf *ret,
                        struct rd_err *err);

/* Seals, and opens, bytes under a name in the folder of chunks, for the parts of a pack that are
 * not blobs. */
bool chunks_seal(struct chunks_codec *codec, const char *name, struct rd_slice plain,
                 struct rd_buf *ret, struct rd_err *err);
bool chunks_unseal(struct chunks_codec *codec, const char *name, struct rd_slice stored,
                   struct rd_buf *ret, struct rd_err *err);

#endif
