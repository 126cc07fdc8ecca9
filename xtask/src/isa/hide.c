/* Preloaded by tests under emulation: hides the instruction sets that every CPU model of the emulator
   has, and that a Raspberry Pi lacks. The program, the standard library and the crates all ask here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/auxv.h>

#define HIDDEN \
  (HWCAP_AES | HWCAP_PMULL | HWCAP_SHA1 | HWCAP_SHA2 | HWCAP_CRC32 | HWCAP_SHA3 | HWCAP_SHA512)

unsigned long getauxval(unsigned long type) {
  unsigned long (*next)(unsigned long) = (unsigned long (*)(unsigned long))dlsym(RTLD_NEXT, "getauxval");
  return type == AT_HWCAP ? next(type) & ~(unsigned long)HIDDEN : next(type);
}
