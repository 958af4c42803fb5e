"""The commands that are operations of the API: made from the manifest, and nothing but clients of it.

Here belongs all that any operation needs: reading values, sending them, showing views. A noun alone has a picture in
`tasklore.commands.pictures`, or a local command beside it.
"""
