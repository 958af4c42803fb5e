"""The bytes that each owner lets be kept in the two servers, by kind, bounded so that nobody fills them for all."""
