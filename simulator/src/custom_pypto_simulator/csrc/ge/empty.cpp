// A library that others name as needed, and that holds nothing anyone calls.
