// The function that torchair's ABI shim needs with the strings of the old libstdc++ ABI.
#define _GLIBCXX_USE_CXX11_ABI 0
#include <string>

const char* custom_pypto_sim_engine_error();

namespace ge {

__attribute__((visibility("default"))) std::string GEGetErrorMsg();
std::string GEGetErrorMsg() { return custom_pypto_sim_engine_error(); }

}  // namespace ge
