// Reads columns of one SQLite rowid table from its b-tree pages into Arrow buffers. Plain C ABI, called without the GIL.
//
// The reader trusts nothing in the file. A table is accepted only if every check holds that SQLite's own structure check
// (`PRAGMA quick_check(TABLE)`) makes of a table without indexes, and more; anything else is refused with a reason and no
// data, and the caller takes the slower way. No page is used twice, so the work is linear in the size of the file.
#ifndef NVPROF_TOOLS_PAGES_H
#define NVPROF_TOOLS_PAGES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NVP_EXPORT __attribute__((visibility("default")))

// Storage classes a stored value can have.
enum { NVP_NULL = 1, NVP_INTEGER = 2, NVP_REAL = 4, NVP_TEXT = 8, NVP_BLOB = 16 };

// What becomes of a column.
enum { NVP_SKIP = 0, NVP_INT64 = 1, NVP_STRING = 2, NVP_DICTIONARY = 3 };

// Why a table was refused; 0 is success. The Python side words them: keep nvprof_tools/native/library.py in step.
enum {
  NVP_OK = 0,
  NVP_REQUEST = 1,    // the request itself is out of range
  NVP_MEMORY = 2,     // no memory
  NVP_READ = 3,       // the file cannot be read, or ends early
  NVP_PAGE = 4,       // a page that is none of this table's tree, or lies about its content
  NVP_ORDER = 5,      // rowids out of order
  NVP_OVERFLOW = 6,   // a broken chain of overflow pages
  NVP_RECORD = 7,     // a record that contradicts its own header
  NVP_CLASS = 8,      // a value of another storage class than its column allows
  NVP_SHORT = 9,      // a row older than a column whose default is a value
  NVP_LIMIT = 10      // more rows, bytes or distinct words than allowed
};

// One column of the table, in the order in which rows store them.
typedef struct {
  uint8_t allowed;    // storage classes a row may hold here
  uint8_t want;       // NVP_SKIP, NVP_INT64, NVP_STRING or NVP_DICTIONARY
  uint8_t may_lack;   // a row that ends before this column holds null here
  uint8_t is_rowid;   // stored as null; the value is the row's key
} nvp_column;

typedef struct {
  int32_t file;             // descriptor, read with pread only
  uint32_t page_size;       // 512 to 65,536, a power of two
  uint32_t reserved;        // bytes at the end of each page that hold no content
  uint32_t pages;           // pages in the file
  uint32_t root;            // the table's first page
  uint32_t columns;
  uint32_t threads;         // at least 1
  uint32_t max_distinct;    // words in one dictionary
  uint64_t max_rows;
  uint64_t max_bytes;       // of the result
  uint64_t max_record;      // bytes of one row
  const nvp_column* column;
} nvp_request;

// One block of memory, to be given back with nvp_pages_free.
typedef struct {
  void* data;
  uint64_t bytes;
} nvp_block;

// One wanted column. Blocks that are not needed are null.
typedef struct {
  nvp_block validity;       // bit per row, set where there is a value; absent when there are no nulls
  nvp_block values;         // int64 per row; int32 codes per row; or the bytes of the strings
  nvp_block offsets;        // int32, one more than there are strings
  nvp_block words;          // bytes of a dictionary's words
  uint64_t nulls;
  uint64_t distinct;        // words of the dictionary
} nvp_vector;

// 0, or why the table was refused; then `rows` and `out` hold nothing. `out` has one element per wanted column, in order.
NVP_EXPORT int nvp_pages_read(const nvp_request* request, nvp_vector* out, uint64_t* rows);

NVP_EXPORT void nvp_pages_free(void* data, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
