#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "driver.h"

namespace tessera::fuzz {
namespace {

struct Folder {
  std::string path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tessera-fuzz-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path = pattern;
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
};

}  // namespace

std::string folder() {
  static const Folder folder;
  return folder.path;
}

std::string write_file(const std::string& name, std::string_view content) {
  std::string path = folder() + "/" + name;
  std::filesystem::remove(path);  // cutting a file to nothing may wait for the disk
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

}  // namespace tessera::fuzz
