/* num_locale.h - the C locale, whatever locale the program runs in.
 */
#ifndef BASE_NUM_LOCALE_H
#define BASE_NUM_LOCALE_H

#include <locale.h>

/* For strtod_l() and similar functions where rd_num_get_f64() does not fit. */
locale_t rd_num_locale(void);

#endif
