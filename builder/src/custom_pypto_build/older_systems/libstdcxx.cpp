// Functions that libstdc++ has in its library only since gcc 9 or 11, while its headers call them.
// They are hidden in the plugin's library.
#include <exception>
#include <new>
#include <sstream>

template std::basic_istringstream<char>::basic_istringstream();
template std::basic_ostringstream<char>::basic_ostringstream();
template std::basic_stringstream<char>::basic_stringstream();

void std::__throw_bad_array_new_length() { throw std::bad_array_new_length(); }

// Before gcc 11 these two are private to the library, which exports what calls them. The version is
// named because the headers define this destructor, too: that would call _M_release.
__asm__(".symver destroy_pointer, _ZNSt15__exception_ptr13exception_ptrD1Ev@CXXABI_1.3.3");
extern "C" void destroy_pointer(void*);

void std::__exception_ptr::exception_ptr::_M_addref() noexcept {
  alignas(exception_ptr) unsigned char never_destroyed[sizeof(exception_ptr)];
  new (never_destroyed) exception_ptr(_M_exception_object);
}

void std::__exception_ptr::exception_ptr::_M_release() noexcept {
  destroy_pointer(this);
  _M_exception_object = nullptr;
}
