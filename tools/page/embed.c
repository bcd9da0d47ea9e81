/* embed.c - writes files as a C array, for the build.
 *
 * usage: embed NAME OUT FILE…      concatenates the bytes of all FILEs
 */
#include <stdio.h>

static int append(FILE *out, const char *path, unsigned long *n)
{
    FILE *in = fopen(path, "rb");
    int c;
    if (in == NULL) {
        perror(path);
        return 1;
    }
    while ((c = getc(in)) != EOF)
        fprintf(out, "%s%d,", (*n)++ % 20 == 0 ? "\n    " : "", c);
    return fclose(in);
}

int main(int argc, char **argv)
{
    unsigned long n = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: embed NAME OUT FILE...\n");
        return 2;
    }
    FILE *out = fopen(argv[2], "wb");
    if (out == NULL) {
        perror(argv[2]);
        return 1;
    }
    fprintf(out, "static const unsigned char %s[] = {", argv[1]);
    for (int i = 3; i < argc; i++)
        if (append(out, argv[i], &n) != 0)
            return 1;
    fprintf(out, "\n};\n");
    return fclose(out) == 0 ? 0 : 1;
}
