"""Text rankers inside other libraries: LangChain, LlamaIndex, Haystack, PyTerrier, …

Each module adapts one library, and importing it needs that library; the others do without. A missing or too old library
raises NotInstalled with the command that installs it.
"""
