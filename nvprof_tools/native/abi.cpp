// The version of all C interfaces of this library together: nvprof_tools/native/library.py asks for it before all else.
extern "C" __attribute__((visibility("default"))) int nvp_abi(void) { return 4; }
