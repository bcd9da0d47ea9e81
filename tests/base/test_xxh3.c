/* The expected hashes are those of xxhsum 0.8.1. */
#include "base/xxh3.h"

#include <criterion/criterion.h>

enum { MAX = 9000 };

static const struct {
    size_t len;
    uint64_t short_hash, low, high;
} cases[] = {
    {0, 0x2d06800538d394c2, 0x6001c324468d497f, 0x99aa06d3014798d8},
    {1, 0xc44bdff4074eecdb, 0xc44bdff4074eecdb, 0xa6cd5e9392000f6a},
    {3, 0xa1c4a8259b827291, 0xa1c4a8259b827291, 0x95c705060a313bf8},
    {4, 0xbb4e3d89ee0b271d, 0xfde8d93ae8794d8e, 0xafbf64f9281b8de2},
    {8, 0x79d02238b80e37b1, 0x0234362aaf47b71a, 0x2761698c33953c43},
    {9, 0xf64cecc4271ff461, 0x895c8a562da51412, 0x0d39db6431d37a74},
    {16, 0x222e9aead6bddd51, 0xaafffcec5df2cb27, 0x29be75b0bbbb5284},
    {17, 0x47aad6b375eb4bba, 0x878751509ecfdb8b, 0xdb7e8f77961e47fd},
    {128, 0x421a9c905c6e66ba, 0xbbe087d879edcc78, 0xba44fd018231af4c},
    {129, 0x9e2414800f83768a, 0xb8075934107218e5, 0x522c922743fd67f1},
    {240, 0xb714c5fd22744964, 0x407883ea5ef95b9a, 0x4f49ccc8526aa7ad},
    {241, 0xbc424a2c480dd281, 0xbc424a2c480dd281, 0x50b62ee1ee6455a7},
    {1024, 0x1fd15e7d36f5e1bc, 0x1fd15e7d36f5e1bc, 0x53bd178b75ab292e},
    {1025, 0xfe08e5a874d23fd2, 0xfe08e5a874d23fd2, 0xd1ad5f4a3cce4374},
    {2048, 0x81ec4a6a9ee23d55, 0x81ec4a6a9ee23d55, 0x2e141090da5502aa},
    {MAX, 0x42ae0bb018767558, 0x42ae0bb018767558, 0x56150f0ae02fc5c1},
};

Test(xxh3, equals_the_reference_at_the_ends_of_every_range_of_lengths)
{
    static uint8_t bytes[MAX];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((uint32_t)i * 2654435761U >> 13);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rd_slice input = rd_slice(bytes, cases[i].len);
        struct rd_xxh3_128 hash = rd_xxh3_128(input);
        cr_expect_eq(rd_xxh3_64(input), cases[i].short_hash, "%zu bytes", cases[i].len);
        cr_expect_eq(hash.low, cases[i].low, "%zu bytes", cases[i].len);
        cr_expect_eq(hash.high, cases[i].high, "%zu bytes", cases[i].len);
    }
}
