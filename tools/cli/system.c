/* system.c - the clock, and chance. */
#include "tools/cli/cli.h"

#include <sys/random.h>
#include <time.h>

void cli_seed(uint64_t seed[2])
{
    /* This does not fail on a system that has booted; a key of zeros would still work. */
    seed[0] = seed[1] = 0;
    if (getrandom(seed, 2 * sizeof *seed, 0) < 0)
        seed[0] = seed[1] = 0;
}

int64_t cli_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void cli_save_suffix(char ret[CLI_SUFFIX_MAX])
{
    time_t now = (time_t)(cli_now_ms() / 1000);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(ret, CLI_SUFFIX_MAX, ".redoubt-save-%Y%m%dT%H%M%SZ", &tm);
}
