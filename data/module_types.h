/* module_types.h - the values of modules whose form in a snapshot is published.
 *
 *     const struct module_type *type = module_type_of(ev->value.module_id);
 *     if (type != NULL)
 *         printf("%s\n", type->words); // "Bloom filter"
 *
 * The value of a module is a sequence of numbers and strings that only the module understands. This
 * table has the sequence of each known type and encoding version; docs/format/modules.md is the
 * same as text. A value of another type or version is opaque.
 */
#ifndef DATA_MODULE_TYPES_H
#define DATA_MODULE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum module_step {
    MODULE_END_ALL, /* the value ends here */
    MODULE_REST,    /* what follows belongs to the module: ignored */
    MODULE_UINT,
    MODULE_SINT,
    MODULE_DOUBLE,
    MODULE_TEXT,   /* a string */
    MODULE_TEXT_Z, /* a string with a zero byte at its end */
    MODULE_BYTES,  /* a string of bytes, of which only the length is shown */
    MODULE_LIST,   /* the steps up to MODULE_END, as many times as the register says */
    MODULE_END,
    MODULE_IF, /* the steps up to MODULE_FI, if the register has a bit of the mask */
    MODULE_FI,
};

enum { MODULE_REGISTERS = 4 };

/* A step without a name is not shown, except for the only step of a list: it is the element. */
struct module_field {
    enum module_step step;
    const char *name;
    uint8_t since; /* first encoding version that has it */
    uint8_t reg;   /* a number: it is kept in this register, 0: not; LIST and IF: the register */
    uint8_t mask;  /* IF */
};

enum module_form {
    MODULE_FIELDS,    /* by the fields */
    MODULE_JSON_TREE, /* JSON, value by value */
    MODULE_JSON_TEXT, /* JSON as one string; the rest is ignored */
};

struct module_type {
    const char *name;     /* nine characters */
    const char *words;    /* what users call it */
    unsigned first, last; /* encoding versions with this form */
    enum module_form form;
    const struct module_field *fields;
};

/* The type of a module id, or NULL if the name or the encoding version is not known. */
const struct module_type *module_type_of(uint64_t id);

/* What users call values of this module, whatever their encoding version; NULL: not known. */
const char *module_type_words(uint64_t id);

#endif
