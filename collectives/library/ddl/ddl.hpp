// What DDL's users in C++ include.
#pragma once

#include <ddl.h>
