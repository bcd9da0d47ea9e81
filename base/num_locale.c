#include "base/num_locale.h"

#include <pthread.h>

static locale_t c_locale;

/* newlocale() of "C" returns a constant of glibc and cannot fail. */
static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t rd_num_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    return c_locale;
}
