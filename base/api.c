#include "base/api.h"

unsigned redoubt_version(void)
{
    return REDOUBT_VERSION_NUMBER;
}

const char *redoubt_version_string(void)
{
    return REDOUBT_VERSION_STRING;
}
